//! Short words for what the tests do with a cluster node.

use std::time::Duration;

use serde_json::{Value, json};
use testbed::{ClusterNode, NodeOptions};
pub(crate) use testbed::{identity, state};

/// Longer than anything that is not broken takes on two busy cores.
pub(crate) const SOON: Duration = Duration::from_secs(60);
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
/// How the runtime says that a container runs.
const RUNS: i32 = 1;

/// A node that is ready.
pub(crate) fn start() -> ClusterNode {
    start_with(NodeOptions::default())
}

pub(crate) fn start_with(options: NodeOptions) -> ClusterNode {
    let node = ClusterNode::start(options).unwrap_or_else(|e| panic!("{e}"));
    node.wait_ready(SOON).unwrap_or_else(|e| panic!("{e}"));
    node
}

/// A pod of this node; `spec` holds what is not said here.
pub(crate) fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"nodeName": "bed", "terminationGracePeriodSeconds": 2},
    });
    if let (Some(own), Some(given)) = (pod["spec"].as_object_mut(), spec.as_object()) {
        own.extend(given.clone());
    }
    pod
}

/// A container that runs a script in busybox; `extra` fields are laid over it.
pub(crate) fn shell(name: &str, script: &str, extra: Value) -> Value {
    let mut container = json!({"name": name, "image": testbed::BUSYBOX_IMAGES[0], "command": ["sh", "-c", script]});
    if let (Some(own), Some(given)) = (container.as_object_mut(), extra.as_object()) {
        own.extend(given.clone());
    }
    container
}

/// Ends at once on SIGTERM, runs until then.
pub(crate) const LASTS: &str = "trap 'exit 0' TERM; while :; do sleep 0.1; done";

/// A pod with one container that lasts.
pub(crate) fn lasting(name: &str) -> Value {
    pod(name, json!({"containers": [shell("main", LASTS, json!({}))]}))
}

/// What kubectl printed.
pub(crate) fn kubectl(node: &ClusterNode, args: &[&str]) -> String {
    node.cluster.kubectl(args).unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()))
}

pub(crate) fn create(node: &ClusterNode, pod: &Value) -> Value {
    node.cluster.admin().create(PODS, pod).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn make(node: &ClusterNode, kind: &str, object: &Value) {
    node.cluster
        .admin()
        .create(&format!("/api/v1/namespaces/default/{kind}"), object)
        .unwrap_or_else(|e| panic!("{e}"));
}

pub(crate) fn wait<T>(node: &ClusterNode, name: &str, what: &str, good: impl FnMut(&Value) -> Option<T>) -> T {
    node.wait_pod(name, what, SOON, good).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn wait_phase(node: &ClusterNode, name: &str, phase: &str) -> Value {
    wait(node, name, &format!("to be {phase}"), |p| (p["status"]["phase"] == phase).then(|| p.clone()))
}

/// Waits until the pod is ready; answers it.
pub(crate) fn wait_running(node: &ClusterNode, name: &str) -> Value {
    wait(node, name, "to be ready", |p| (condition(p, "Ready")["status"] == "True").then(|| p.clone()))
}

/// Waits until the API server knows no such pod.
pub(crate) fn wait_gone(node: &ClusterNode, name: &str) {
    wait(node, name, "to be gone", |p| p.is_null().then_some(()));
}

pub(crate) fn delete(node: &ClusterNode, name: &str) {
    node.cluster.admin().delete(&format!("{PODS}/{name}")).unwrap_or_else(|e| panic!("{e}"));
}

/// Waits until what the container wrote looks as `good` says; answers it.
pub(crate) fn wait_output(node: &ClusterNode, pod: &Value, what: &str, good: impl Fn(&str) -> bool) -> String {
    testbed::wait_until(what, 2 * SOON, || {
        let text = node.output(pod, "main");
        if good(&text) { Ok(text) } else { Err(format!("{text}\n{}", node.bosun.log())) }
    })
    .unwrap_or_else(|e| panic!("{e}"))
}

/// A condition of an object's status; null when it is not there.
pub(crate) fn condition(object: &Value, kind: &str) -> Value {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|c| c["type"] == kind).cloned().unwrap_or(Value::Null)
}

/// Reasons of the events about an object.
pub(crate) fn reasons(node: &ClusterNode, name: &str) -> Vec<String> {
    let events = node.events(name).unwrap_or_else(|e| panic!("{e}"));
    events.iter().map(|e| e["reason"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Waits until there is an event for each of these reasons.
pub(crate) fn wait_reasons(node: &ClusterNode, name: &str, wanted: &[&str]) -> Vec<String> {
    testbed::wait_until(&format!("events {wanted:?} about {name}"), SOON, || {
        let seen = reasons(node, name);
        if wanted.iter().all(|w| seen.iter().any(|s| s == w)) { Ok(seen) } else { Err(format!("{seen:?}")) }
    })
    .unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()))
}

/// Names of the pods whose containers run, as the runtime itself says.
pub(crate) fn running(node: &ClusterNode) -> Vec<String> {
    let all = node.bed.containers().unwrap_or_else(|e| panic!("{e}"));
    all.into_iter().filter(|(.., state)| *state == RUNS).map(|(pod, ..)| pod).collect()
}

/// Waits until the runtime runs the only container of a pod that was started once before.
pub(crate) fn wait_started_again(node: &ClusterNode, name: &str) {
    testbed::wait_until("the container to be started again", SOON, || {
        let all = node.bed.containers().map_err(|e| e.to_string())?;
        let runs = all.iter().any(|(pod, _, attempt, state)| pod == name && (*attempt, *state) == (1, RUNS));
        if runs { Ok(()) } else { Err(format!("{all:?}")) }
    })
    .unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()))
}

/// Ends the only container of a pod from outside, as a crash would.
pub(crate) fn crash(node: &ClusterNode, pod: &Value) {
    node.bed.kill_container(&identity(pod)[0].0).unwrap_or_else(|e| panic!("{e}"));
}
