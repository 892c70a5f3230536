//! One trace per step of a pod, from its worker to the runtime.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::Arc;

use fakes::runtime::Fault;
use sim::{LIMIT, SimNode};
use trace::{Context, Finished, Limits, Queue, Sampler, Value};

use crate::{run, secs, simple};

/// Traces so many of a million. Each test is a process of its own.
fn traced(rate: u32) -> Arc<Queue> {
    let queue = Arc::new(Queue::new(Limits { queue: 100_000, batch: 100_000, gather: secs(1) }));
    assert!(
        trace::install(Sampler::per_million(rate), queue.clone(), Arc::new(|| 1)),
        "one test to a process (nextest)"
    );
    queue
}

fn text<'a>(span: &'a Finished, key: &str) -> &'a str {
    match span.attributes.iter().find(|a| a.0 == key) {
        Some((_, Value::Text(text))) => text,
        other => panic!("{key} is {other:?} in {span:?}"),
    }
}

/// `a > b > c` of each span of this trace: its name, behind those of its parents.
fn ways(spans: &[Finished], of: &Finished) -> BTreeSet<String> {
    let by_id: BTreeMap<NonZeroU64, &Finished> =
        spans.iter().filter(|s| s.context.trace == of.context.trace).map(|s| (s.context.span, s)).collect();
    let way = |span: &&Finished| {
        let mut names = vec![&*span.name];
        let mut parent = span.parent;
        while let Some(above) = parent {
            let above = by_id.get(&above).expect("a parent has ended after its children");
            names.push(&above.name);
            parent = above.parent;
        }
        names.reverse();
        names.join(" > ")
    };
    by_id.values().map(way).collect()
}

/// The steps of a pod that called this.
fn steps<'a>(spans: &'a [Finished], step: &'a str, call: &'a str) -> Vec<&'a Finished> {
    let calls: BTreeSet<_> = spans.iter().filter(|s| s.name.ends_with(call)).map(|s| s.context.trace).collect();
    spans.iter().filter(|s| s.name == step && calls.contains(&s.context.trace)).collect()
}

async fn start_and_end(node: &SimNode) {
    node.put("web.yaml", &simple("web", ""));
    node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
    node.remove("web.yaml");
    node.until("web is gone", LIMIT, |n| n.running_ids().is_empty() && n.uid("web").is_none()).await;
}

#[test]
fn a_pod_starts_in_one_trace_of_which_the_runtime_is_told() {
    let queue = traced(1_000_000);
    run(async move |node| {
        start_and_end(&node).await;
        let spans = queue.batch().await;
        let starts = steps(&spans, "syncPod", "/RunPodSandbox");
        let [start] = starts[..] else { panic!("{starts:?}") };
        assert_eq!((text(start, "k8s.pod"), text(start, "k8s.namespace.name")), ("default/web-sim", "default"));
        assert_eq!(text(start, "k8s.pod.update_type"), "create");
        let ways = ways(&spans, start);
        for way in [
            "syncPod > EnsurePodCgroup",
            "syncPod > MakePodDirs",
            "syncPod > RunPodSandbox > runtime.v1.RuntimeService/RunPodSandbox",
            "syncPod > EnsureImage > runtime.v1.ImageService/ImageStatus",
            "syncPod > CreateContainer > runtime.v1.RuntimeService/CreateContainer",
            "syncPod > StartContainer > runtime.v1.RuntimeService/StartContainer",
        ] {
            assert!(ways.contains(way), "{way} is not among {ways:#?}");
        }
        let ends = steps(&spans, "syncTerminatingPod", "/StopPodSandbox");
        let [end] = ends[..] else { panic!("{ends:?}") };
        assert_ne!(end.context.trace, start.context.trace);
        assert!(spans.iter().any(|s| s.name == "syncTerminatedPod"));

        let told: Vec<Context> = node.world.runtime.traceparents().iter().map(|t| Context::parse(t).unwrap()).collect();
        let calls: BTreeMap<_, _> = spans.iter().map(|s| (s.context.span, s)).collect();
        for step in ["RunPodSandbox", "CreateContainer", "StartContainer"] {
            let heard = told.iter().filter_map(|c| calls.get(&c.span)).filter(|s| s.name.ends_with(step));
            let heard: Vec<_> = heard.collect();
            let [call] = heard[..] else { panic!("{step}: {heard:?}") };
            assert_eq!(call.context.trace, start.context.trace, "{step}");
            assert_eq!(text(call, "rpc.response.status_code"), "OK");
        }
    });
}

#[test]
fn a_call_that_fails_is_told_with_its_status_and_so_is_the_step() {
    let queue = traced(1_000_000);
    run(async move |node| {
        node.world.runtime.inject(Fault::error("CreateContainer", tonic::Code::ResourceExhausted, "no room").times(1));
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let spans = queue.batch().await;
        let failed = spans.iter().find(|s| s.name.ends_with("/CreateContainer") && s.error.is_some()).unwrap();
        assert_eq!(
            (text(failed, "rpc.response.status_code"), failed.error.as_deref()),
            ("ResourceExhausted", Some("no room"))
        );
        let step = spans.iter().find(|s| s.name == "syncPod" && s.context.trace == failed.context.trace).unwrap();
        assert!(step.error.as_deref().is_some_and(|e| e.contains("no room")), "{step:?}");
    });
}

#[test]
fn what_is_not_recorded_is_told_to_the_runtime_as_such() {
    let queue = traced(0);
    run(async move |node| {
        start_and_end(&node).await;
        let told = node.world.runtime.traceparents();
        assert!(!told.is_empty() && told.iter().all(|t| t.ends_with("-00")), "{told:?}");
        let batch = tokio::time::timeout(secs(10), queue.batch()).await;
        assert!(batch.is_err(), "{batch:?}");
    });
}

#[test]
fn nobody_is_told_of_traces_that_there_are_not() {
    run(async move |node| {
        start_and_end(&node).await;
        assert_eq!(node.world.runtime.traceparents(), Vec::<String>::new());
    });
}
