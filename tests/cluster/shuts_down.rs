//! A machine that goes down, as the users of a cluster see it, beside what they see of a Go kubelet.
//!
//! The recording in `tests/golden/shutdown` is a kubelet's. With a kubelet at hand (`KUBELET=PATH`) a test of the feature `kubelet`
//! makes it anew.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use testbed::{BosunOptions, ClusterNode, NodeOptions};

use crate::beside::Agent;
use crate::logind::Logind;
use crate::node::{SOON, condition, create, kubectl, pod, shell, start_with, wait, wait_running};

const RECORDING: &str = "tests/golden/shutdown/kubelet-1.36.2.json";

fn status(node: &ClusterNode, name: &str) -> Value {
    let text = kubectl(node, &["get", "pod", name, "-o", "json"]);
    serde_json::from_str::<Value>(&text).expect("JSON")["status"].clone()
}

/// What a pod says of its end.
fn told(status: &Value) -> Value {
    let disrupted = condition(&json!({ "status": status }), "DisruptionTarget");
    let exits: Vec<&Value> = status["containerStatuses"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|c| &c["state"]["terminated"]["exitCode"])
        .collect();
    json!({
        "phase": status["phase"], "reason": status["reason"], "message": status["message"], "exit": exits,
        "disruption": [disrupted["status"], disrupted["reason"], disrupted["message"]],
    })
}

/// When the last container of a pod ended; texts of times sort as the times do.
fn ended(status: &Value) -> String {
    let all = status["containerStatuses"].as_array().into_iter().flatten();
    all.filter_map(|c| c["state"]["terminated"]["finishedAt"].as_str()).max().unwrap_or_default().to_owned()
}

/// The machine goes down; what was seen.
fn shutdown(agent: Agent) -> Value {
    let logind = Logind::start();
    let config = json!({"shutdownGracePeriod": "16s", "shutdownGracePeriodCriticalPods": "8s"});
    let bosun = BosunOptions { config, env: vec![logind.env()], ..BosunOptions::default() };
    let mut node = start_with(NodeOptions { bosun, ..NodeOptions::default() });
    let mut lock = logind.lock(SOON);
    if agent == Agent::Kubelet {
        agent.serve(&mut node);
        lock = logind.lock(SOON);
    }
    let runs = |name: &str, on_term: &str, grace: u32, class: Option<&str>| {
        let script = format!("trap '{on_term}' TERM; while :; do sleep 0.1; done");
        let spec = json!({"terminationGracePeriodSeconds": grace, "priorityClassName": class, "containers": [shell("main", &script, json!({}))]});
        create(&node, &pod(name, spec));
    };
    runs("plain", "sleep 1; exit 3", 30, None);
    runs("deaf", "", 3, None);
    runs("critical", "exit 4", 30, Some("system-node-critical"));
    for name in ["plain", "deaf", "critical"] {
        wait_running(&node, name);
    }
    logind.go_down();
    let not_ready = |object: &Value| {
        let ready = condition(object, "Ready");
        (ready["status"] == "False").then(|| json!([ready["reason"], ready["message"]]))
    };
    let ready = node.wait_node("to be shutting down", SOON, not_ready).unwrap_or_else(|e| panic!("{e}"));
    create(&node, &pod("late", json!({"containers": [shell("main", "exit 0", json!({}))]})));
    let refused =
        wait(&node, "late", "to be refused", |pod| (pod["status"]["phase"] == "Failed").then(|| pod["status"].clone()));
    lock.wait_released();
    // The machine may go down now: what the API server does not know yet it never will.
    let ends = ["plain", "deaf", "critical"].map(|name| status(&node, name));
    // A shell that cannot go on says why; a test that fails shows it.
    for (name, end) in ["plain", "deaf", "critical"].iter().zip(&ends) {
        let log = node.cluster.kubectl(&["logs", name]);
        println!("{name}: {} log {log:?}", end["containerStatuses"][0]["state"]);
    }
    let order = [&ends[0], &ends[1]].iter().all(|normal| ended(normal) <= ended(&ends[2]));
    let of = |name: &str, status: &Value| (name.to_owned(), told(status));
    let pods: Map<String, Value> =
        [of("plain", &ends[0]), of("deaf", &ends[1]), of("critical", &ends[2])].into_iter().collect();
    json!({
        "pods": pods, "criticalLast": order, "ready": ready,
        "refused": [refused["reason"], refused["message"]], "events": events(&node),
    })
}

/// Messages of the node's events about shutdowns.
fn events(node: &ClusterNode) -> Vec<Value> {
    let text = kubectl(
        node,
        &["get", "events", "-A", "--field-selector", "reason=Shutdown,involvedObject.kind=Node", "-o", "json"],
    );
    let list: Value = serde_json::from_str(&text).expect("JSON");
    list["items"].as_array().into_iter().flatten().map(|event| json!([event["type"], event["message"]])).collect()
}

fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(RECORDING)
}

#[test]
fn pods_end_in_their_order_with_the_words_of_a_kubelet_before_the_machine_goes_down() {
    let text = std::fs::read_to_string(recording()).expect("the recording");
    let recorded: Value = serde_json::from_str(&text).expect("JSON");
    let seen = shutdown(Agent::Bosun);
    assert_eq!(seen, recorded, "{seen:#}");
}

#[cfg(feature = "kubelet")]
#[test]
fn record_the_shutdown_of_a_kubelet() {
    let _tunables = crate::beside::Tunables::keep();
    let seen = shutdown(Agent::Kubelet);
    let path = recording();
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
    std::fs::write(path, serde_json::to_string_pretty(&seen).expect("JSON") + "\n").expect("the recording");
}
