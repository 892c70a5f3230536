//! Pods that are stuck, each in its way, on a whole node: what `bosun why` says of them over the local socket's routes, and what
//! is left of a history after the daemon's death.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use contract::pod_worker::WorkerPhase;
use fakes::PluginTrouble;
use fakes::runtime::{ExecReply, Fault, OnTerm, Program, Pull};
use model::core::Pod;
use node_config::Threshold;
use serde_json::{Value, json};
use sim::{LIMIT, SimNode, World};
use tokio::time::sleep;
use tonic::Code;
use tower::ServiceExt;

use crate::{drivers, pod, run, secs, simple, volumes};

/// What the daemon answers on its local socket.
async fn ask(node: &SimNode, what: &str, name: &str) -> (StatusCode, String) {
    let request = Request::builder().uri(format!("/v1/{what}/{name}")).body(Body::empty()).unwrap();
    let answer = server::local::router(node.node().views(true)).oneshot(request).await.unwrap();
    let status = answer.status();
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn why(node: &SimNode, name: &str) -> Value {
    let (status, text) = ask(node, "why", name).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Within a minute and a half the cause is named, and a minute later it is still the same one.
async fn says(node: &SimNode, name: &str, cause: &str, words: &[&str]) {
    for _ in 0..90 {
        // At first nobody knows the pod.
        let (status, text) = ask(node, "why", name).await;
        if status == StatusCode::OK && serde_json::from_str::<Value>(&text).unwrap()["cause"] == cause {
            break;
        }
        sleep(secs(1)).await;
    }
    let mut verdict = Value::Null;
    for later in [0, 7, 60] {
        sleep(secs(later)).await;
        verdict = why(node, name).await;
        let all = serde_json::to_string_pretty(&verdict).unwrap();
        assert_eq!(verdict["cause"], cause, "{later} s later: {all}\n{}", node.picture());
        for word in words {
            assert!(all.contains(word), "{word}: {all}");
        }
    }
    let now = verdict["nowNs"].as_i64().unwrap();
    let since = verdict["sinceNs"].as_i64().unwrap_or(now);
    assert!(since <= now, "{verdict}");
}

/// A node of a cluster on which all is well.
fn run_in_cluster(change: impl FnOnce(&mut World) + 'static, test: impl AsyncFnOnce(SimNode) + 'static) {
    sim::log_to_stderr();
    actor::testing::run(1, |kernel| async move {
        let mut world = World::in_cluster(&kernel);
        world.settings.config.sources.static_pod_url = None;
        world.settings.flags.kubeconfig = Some("/etc/kubernetes/kubelet.conf".into());
        change(&mut world);
        let mut node = SimNode::down(world, &kernel);
        node.boot();
        node.world.runtime.add_images(&["app:1", "tool:1"]);
        test(node).await;
    });
}

fn app() -> Value {
    json!({ "containers": [{ "name": "app", "image": "app:1" }] })
}

#[test]
fn an_image_that_is_missing() {
    run(async |node| {
        let fails = Pull::Fails(secs(1), Code::NotFound, "new:1: not found".to_owned());
        node.world.runtime.registry("new:1", fails);
        node.put("web.yaml", &pod("web", "\n  containers:\n  - {name: app, image: 'new:1'}"));
        says(&node, "web", "ImageMissing", &["new:1", "image-manager", "not found", "start app: new sandbox"]).await;
    });
}

#[test]
fn a_registry_that_is_slow() {
    run(async |node| {
        node.world.runtime.registry("new:1", Pull::Hangs);
        node.put("web.yaml", &pod("web", "\n  containers:\n  - {name: app, image: 'new:1'}"));
        says(&node, "web", "ImagePulling", &["new:1", "the registry"]).await;
    });
}

#[test]
fn a_volume_whose_driver_does_not_answer() {
    actor::testing::run(1, |kernel| async move {
        let node = volumes::with_driver(&kernel).await;
        let socket = drivers::socket(drivers::DRIVER);
        says(&node, "web", "VolumeWaits", &["disk", "claim data", "not attached"]).await;
        node.world.plugins.trouble(&socket, "NodeStageVolume", Some(PluginTrouble::Hang));
        drivers::attach(&node, &["data".to_owned()], &[]);
        sleep(secs(20)).await;
        let verdict = why(&node, "web").await;
        assert_eq!(
            (&verdict["cause"], &verdict["owner"]),
            (&json!("VolumeWaits"), &json!("the CSI driver")),
            "{verdict}"
        );
        assert!(verdict["waitsFor"].as_str().unwrap().contains("NodeStageVolume of resident.example"), "{verdict}");
    });
}

#[test]
fn a_network_that_is_not_ready() {
    run(async |node| {
        node.world.runtime.set_network_ready(false);
        sleep(secs(60)).await;
        node.put("web.yaml", &simple("web", ""));
        says(&node, "web", "NetworkNotReady", &["network plugin", "NetworkReady"]).await;
    });
}

#[test]
fn a_container_that_ends_again_and_again() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::exits(secs(1), 3).message("no config")]);
        node.put("web.yaml", &simple("web", ""));
        node.until("it crashed three times", secs(200), |n| n.instances("web", "app").len() >= 2).await;
        sleep(secs(45)).await;
        says(
            &node,
            "web",
            "CrashLoop",
            &["its own process", "exited with code 3", "no config", "--previous", "untilNs"],
        )
        .await;
    });
}

#[test]
fn a_probe_that_fails() {
    run(async |node| {
        node.world.runtime.on_exec(|_| ExecReply { exit_code: 1, stdout: b"not yet".to_vec(), ..ExecReply::default() });
        let probe = "readinessProbe: {exec: {command: [ready]}, periodSeconds: 2}";
        node.put("web.yaml", &pod("web", &format!("\n  containers:\n  - {{name: app, image: 'app:1', {probe}}}")));
        says(&node, "web", "ProbeFailing", &["readiness probe of container app fails", "not yet"]).await;
    });
}

#[test]
fn a_liveness_probe_that_restarts_its_container_is_named_as_the_cause() {
    run(async |node| {
        node.world.runtime.on_exec(|_| ExecReply { exit_code: 1, stdout: b"dead".to_vec(), ..ExecReply::default() });
        let probe = "livenessProbe: {exec: {command: [alive]}, periodSeconds: 1, failureThreshold: 1}";
        node.put("web.yaml", &pod("web", &format!("\n  containers:\n  - {{name: app, image: 'app:1', {probe}}}")));
        node.until("it is held", secs(300), |n| n.state("web", "app") == "waiting:CrashLoopBackOff").await;
        let verdict = why(&node, "web").await;
        assert_eq!(verdict["cause"], "ProbeFailing", "{verdict}");
        assert!(verdict["summary"].as_str().unwrap().contains("liveness probe fails"), "{verdict}");
    });
}

#[test]
fn an_init_container_that_fails_again_and_again() {
    run(async |node| {
        node.world.runtime.program("setup", &[Program::exits(secs(1), 7)]);
        let init = "\n  initContainers:\n  - {name: setup, image: 'tool:1'}";
        node.put("web.yaml", &simple("web", init));
        node.until("it failed twice", secs(200), |n| n.restarts().get("web-sim/setup").is_some_and(|r| *r >= 2)).await;
        says(&node, "web", "InitLoop", &["init container setup", "exited with code 7"]).await;
    });
}

#[test]
fn a_pod_that_admission_refuses() {
    run_in_cluster(
        |_| (),
        async |node| {
            let asks = json!({ "requests": { "cpu": "100" } });
            node.bind("web", json!({ "containers": [{ "name": "app", "image": "app:1", "resources": asks }] }));
            says(&node, "web", "AdmissionRefused", &["OutOfcpu", "pod-manager"]).await;
            let (_, text) = ask(&node, "timeline", "web").await;
            let life: Value = serde_json::from_str(&text).unwrap();
            let admitted = life["bars"].as_array().unwrap().iter().find(|b| b["label"] == "admitted");
            assert_eq!(admitted.unwrap()["outcome"], "failed", "{text}");
        },
    );
}

#[test]
fn an_api_server_that_is_away_when_a_pod_is_to_go() {
    run_in_cluster(
        |_| (),
        async |node| {
            node.world.runtime.program("app", &[Program::forever().on_term(OnTerm::Exit(secs(3), 0))]);
            node.bind("web", app());
            node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
            node.delete("web");
            node.until("it ends", LIMIT, |n| n.worker_phase("web") == Some(WorkerPhase::Terminating)).await;
            node.api().unplug();
            says(&node, "web", "ApiAway", &["status-syncer", "connection refused", "to end"]).await;
        },
    );
}

#[test]
fn a_runtime_that_hangs() {
    run(async |node| {
        node.world.runtime.inject(Fault::hang("CreateContainer"));
        node.put("web.yaml", &simple("web", ""));
        sleep(secs(15)).await;
        let verdict = why(&node, "web").await;
        assert_eq!(
            (&verdict["cause"], &verdict["owner"]),
            (&json!("RuntimeHangs"), &json!("the container runtime")),
            "{verdict}"
        );
        assert_eq!(
            (&verdict["step"], &verdict["waitsFor"]),
            (&json!("CreateContainer of app"), &json!("CreateContainer"))
        );
        let since = verdict["nowNs"].as_i64().unwrap() - verdict["sinceNs"].as_i64().unwrap();
        assert!((10..=15).contains(&(since / 1_000_000_000)), "{verdict}");
    });
}

#[test]
fn an_object_that_a_finalizer_keeps() {
    run_in_cluster(
        |_| (),
        async |node| {
            node.bind("web", app());
            node.api().change::<Pod>(Some("default"), "web-sim", |p| {
                p.metadata.finalizers = Some(vec!["example.com/billing".to_owned()]);
            });
            node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
            node.delete("web");
            says(&node, "web", "TerminatingFinalizer", &["example.com/billing", "who set the finalizers"]).await;
        },
    );
}

#[test]
fn a_node_under_pressure() {
    let short = |world: &mut World| {
        let threshold = Threshold::Amount(model::quantity::Quantity::from_bytes(900 << 40));
        world.settings.config.eviction.hard.insert("nodefs.available".to_owned(), threshold);
    };
    run_in_cluster(short, async |node| {
        let pressed = |n: &SimNode| !n.wiring().value::<contract::node::NodeView>().get().pressure.is_empty();
        node.until("the node is under pressure", LIMIT, pressed).await;
        node.bind("web", app());
        says(&node, "web", "NodePressure", &["DiskPressure"]).await;
    });
}

#[test]
fn a_pod_that_is_well_and_one_that_is_not_there() {
    run(async |node| {
        node.put("web.yaml", &simple("web", ""));
        says(&node, "web", "Ready", &["start app: new sandbox", "create sandbox attempt 0: no sandbox exists"]).await;
        let (status, text) = ask(&node, "why", "wen").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(text.contains("did you mean default/web-sim?"), "{text}");
    });
}

/// Labels of the bars of the pod and its containers, each once, in their order.
fn labels(text: &str) -> Vec<String> {
    let life: Value = serde_json::from_str(text).unwrap();
    let label = |b: &Value| format!("{} {}", b["of"].as_str().unwrap(), b["label"].as_str().unwrap()).trim().to_owned();
    life["bars"].as_array().unwrap().iter().map(label).collect()
}

#[test]
fn a_life_outlives_the_daemon_and_what_was_under_way_is_told_as_interrupted() {
    sim::log_to_stderr();
    actor::testing::run(1, |kernel| async move {
        let mut node = SimNode::start(&kernel);
        node.world.runtime.add_images(&["app:1"]);
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let before = labels(&ask(&node, "timeline", "web").await.1);
        let steps = ["admitted", "volumes", "sandbox", "ready", "app pull", "app create", "app start", "app running"];
        assert_eq!(before, steps);
        sleep(secs(600)).await;
        assert_eq!(labels(&ask(&node, "timeline", "web").await.1), steps, "looks that change nothing leave no trace");
        node.world.runtime.inject(Fault::hang("StartContainer"));
        let id = node.running_id("web", "app").unwrap();
        assert!(node.world.runtime.exit(&id, 9));
        sleep(secs(40)).await;
        node.kill().await;
        node.world.runtime.clear_faults();
        node.boot();
        node.until("web is ready", secs(600), |n| n.is_ready("web") && n.instances("web", "app").len() > 1).await;
        let text = ask(&node, "timeline", "web").await.1;
        let after = labels(&text);
        assert!(after.contains(&"daemon back".to_owned()) && after.contains(&"sandbox".to_owned()), "{text}");
        assert_eq!(after.iter().filter(|l| *l == "admitted").count(), 1, "{text}");
        assert!(text.contains("start app: interrupted") && text.contains("app exited with code 9"), "{text}");
        node.remove("web.yaml");
        node.until("web is gone", LIMIT, |n| n.is_gone("web")).await;
        let line = "history/";
        assert!(ports::journal::Journal::keys(&*node.world.journal, line).unwrap().is_empty());
    });
}
