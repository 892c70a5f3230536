//! What metrics-server, Prometheus and dashboards read, through the API server's proxy.

use std::collections::BTreeMap;

use serde_json::Value;
use testbed::ClusterNode;

use crate::node::{SOON, create, kubectl, lasting, start, wait_running};

fn raw(node: &ClusterNode, path: &str) -> String {
    kubectl(node, &["get", "--raw", &format!("/api/v1/nodes/bed/proxy/{path}")])
}

fn json_of(node: &ClusterNode, path: &str) -> Value {
    let text = raw(node, path);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}: {text}"))
}

/// Samples of one family: labels as written, value, whether it has a time of its own.
fn samples(text: &str, name: &str) -> Vec<(String, f64, bool)> {
    let lines = text.lines().filter_map(|l| {
        let rest = l.strip_prefix(name)?;
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => rest.split_once("} ")?,
            None => ("", rest.strip_prefix(' ')?),
        };
        let mut words = rest.split(' ');
        Some((labels.to_owned(), words.next()?.parse().ok()?, words.next().is_some()))
    });
    lines.collect()
}

/// metrics-server's rule: CPU and memory of each container with times of their own, and its start time; a container that
/// lacks one takes the whole pod with it.
fn pods_that_metrics_server_takes(text: &str) -> BTreeMap<String, f64> {
    let cpu = samples(text, "container_cpu_usage_seconds_total");
    let memory = samples(text, "container_memory_working_set_bytes");
    let start = samples(text, "container_start_time_seconds");
    let has = |of: &[(String, f64, bool)], labels: &str, timed| of.iter().any(|s| s.0 == labels && s.2 >= timed);
    let good = memory.iter().filter(|m| m.1 > 0.0 && m.2 && has(&cpu, &m.0, true) && has(&start, &m.0, false));
    good.map(|m| (m.0.clone(), m.1)).collect()
}

/// The pod `box` of a summary.
fn ours(summary: &Value) -> Option<&Value> {
    summary["pods"].as_array()?.iter().find(|p| p["podRef"]["name"] == "box")
}

/// What a summary lacks of the node's and the pod's figures.
fn missing_in(summary: &Value) -> Vec<&'static str> {
    let node = [
        "/node/cpu/usageCoreNanoSeconds",
        "/node/memory/workingSetBytes",
        "/node/fs/capacityBytes",
        "/node/rlimit/curproc",
    ];
    let pod = [
        "/containers/0/cpu/usageCoreNanoSeconds",
        "/containers/0/memory/workingSetBytes",
        "/containers/0/rootfs/usedBytes",
        "/containers/0/logs/usedBytes",
        "/network/rxBytes",
        "/memory/usageBytes",
        "/process_stats/process_count",
    ];
    let node = node.into_iter().filter(|path| summary.pointer(path).and_then(Value::as_u64) <= Some(0));
    let pod = pod.into_iter().filter(|path| !ours(summary).and_then(|p| p.pointer(path)).is_some_and(Value::is_u64));
    node.chain(pod).collect()
}

#[test]
fn stats_and_metrics_reach_their_readers() {
    let node = start();
    create(&node, &lasting("box"));
    let pod = wait_running(&node, "box");
    testbed::wait_until("metrics-server to take the pod", SOON, || {
        let text = raw(&node, "metrics/resource");
        let taken = pods_that_metrics_server_takes(&text);
        let ours = taken.keys().any(|l| l.contains(r#"pod="box""#) && l.contains(r#"container="main""#));
        let node = !samples(&text, "node_cpu_usage_seconds_total").is_empty()
            && !samples(&text, "node_memory_working_set_bytes").is_empty();
        if ours && node { Ok(()) } else { Err(text) }
    })
    .unwrap_or_else(|e| panic!("{e}"));

    // The runtime measures writable layers now and then, not when it is asked.
    let summary = testbed::wait_until("the summary to be whole", SOON, || {
        let summary = json_of(&node, "stats/summary");
        let missing = missing_in(&summary);
        if missing.is_empty() { Ok(summary) } else { Err(format!("{missing:?}: {summary:#}")) }
    });
    let summary = summary.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(summary["node"]["nodeName"], "bed", "{summary:#}");
    assert_eq!(ours(&summary).expect("the pod")["podRef"]["uid"], pod["metadata"]["uid"]);

    let text = raw(&node, "metrics");
    assert_eq!(samples(&text, "kubelet_node_name"), [(r#"node="bed""#.to_owned(), 1.0, false)]);
    assert!(samples(&text, "kubelet_running_pods").first().is_some_and(|s| s.1 >= 1.0), "{text}");
    assert!(
        samples(&text, "kubelet_runtime_operations_total").iter().any(|s| s.0.contains("run_podsandbox")),
        "{text}"
    );
    assert!(!samples(&text, "bosun_actor_restarts_total").is_empty(), "{text}");
    let text = raw(&node, "metrics/cadvisor");
    let rows = samples(&text, "container_memory_working_set_bytes");
    assert!(rows.iter().any(|s| s.0.contains(r#"container="main""#) && s.0.contains(r#"pod="box""#) && s.2), "{text}");
    raw(&node, "metrics/probes");

    let pods = json_of(&node, "pods");
    assert_eq!(pods["kind"], "PodList");
    assert!(pods["items"].as_array().into_iter().flatten().any(|p| p["metadata"]["name"] == "box"), "{pods:#}");
    assert_eq!(json_of(&node, "configz")["kubeletconfig"]["registerNode"], true);
    assert_eq!(raw(&node, "healthz"), "ok");
}
