//! Pods get other resources while they run (KEP-1287): API server, runtime and kernel agree, nobody is started anew who need not
//! be. `RESIZES` says how often, `RESIZES_SEED` by which chance.

use std::path::Path;

use serde_json::{Value, json};
use testbed::{ClusterNode, ControlPlane, identity};

use crate::node::{LASTS, PODS, SOON, condition, create, pod, shell, start, wait, wait_reasons, wait_running};

mod beside;
mod chance;

/// Whether the server has a subresource for it; that it has not is told.
fn can_resize() -> bool {
    let minor = ControlPlane::find().unwrap_or_else(|e| panic!("{e}")).minor();
    if minor < 33 {
        eprintln!("left out: pods of an API server of 1.{minor} cannot be resized, those of 1.33 can");
    }
    minor >= 33
}

fn node() -> Option<ClusterNode> {
    can_resize().then(start)
}

fn sized(name: &str, cpu: u64, memory: u64, policy: &str) -> Value {
    let policy = json!([{"resourceName": "memory", "restartPolicy": policy}]);
    shell(name, LASTS, json!({"resources": amounts(cpu, memory), "resizePolicy": policy}))
}

/// Requests are half of the limits.
fn amounts(cpu: u64, memory: u64) -> Value {
    let list = |cpu: u64, memory: u64| json!({"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")});
    json!({"requests": list(cpu / 2, memory / 2), "limits": list(cpu, memory)})
}

fn resize(node: &ClusterNode, pod: &str, container: &str, amounts: &Value) {
    let spec = json!({"spec": {"containers": [{"name": container, "resources": amounts}]}});
    node.cluster.admin().patch(&format!("{PODS}/{pod}/resize"), &spec).unwrap_or_else(|e| panic!("{e}"));
}

fn status<'a>(pod: &'a Value, container: &str) -> &'a Value {
    let lists = ["containerStatuses", "initContainerStatuses"];
    let all = lists.into_iter().flat_map(|list| pod["status"][list].as_array().into_iter().flatten());
    all.into_iter().find(|c| c["name"] == container).unwrap_or(&Value::Null)
}

/// Waits until the status shows these resources and no resize is under way.
fn wait_sized(node: &ClusterNode, name: &str, container: &str, amounts: &Value) -> Value {
    wait(node, name, &format!("{container} to have {amounts}"), |pod| {
        let of = status(pod, container);
        let quiet = condition(pod, "PodResizeInProgress").is_null() && condition(pod, "PodResizePending").is_null();
        let same = of["resources"] == *amounts && of["allocatedResources"] == amounts["requests"];
        (quiet && same).then(|| pod.clone())
    })
}

fn is_v1() -> bool {
    Path::new("/sys/fs/cgroup/memory").exists()
}

/// A number of the pod's cgroup (`None`), or of a container's.
fn kernel(node: &ClusterNode, pod: &Value, container: Option<&str>, file: (&str, &str)) -> i64 {
    kernel_now(node, pod, container, file).unwrap_or_else(|e| panic!("{e}"))
}

/// As [`kernel`]; the container may be gone.
fn kernel_now(node: &ClusterNode, pod: &Value, container: Option<&str>, (v1, v2): (&str, &str)) -> Result<i64, String> {
    let (tree, file) = if is_v1() { v1.split_once('/').expect("a tree") } else { ("", v2) };
    let uid = pod["metadata"]["uid"].as_str().expect("a UID");
    let class = if pod["status"]["qosClass"] == "Burstable" { "/burstable" } else { "" };
    let mut dir = format!("/sys/fs/cgroup/{tree}{}/kubepods{class}/pod{uid}", node.bed.cgroup_root());
    if let Some(name) = container {
        let id = status(pod, name)["containerID"].as_str().unwrap_or_default();
        dir = format!("{dir}/{}", testbed::plain_id(id));
    }
    let text = std::fs::read_to_string(format!("{dir}/{file}")).map_err(|e| format!("{dir}/{file}: {e}"))?;
    let first = text.split_whitespace().next().and_then(|n| n.parse().ok());
    first.ok_or_else(|| format!("{dir}/{file}: {text:?}"))
}

const MEMORY: (&str, &str) = ("memory/memory.limit_in_bytes", "memory.max");
const QUOTA: (&str, &str) = ("cpu/cpu.cfs_quota_us", "cpu.max");
const SHARES: (&str, &str) = ("cpu/cpu.shares", "cpu.weight");

fn restarts(pod: &Value, container: &str) -> i64 {
    status(pod, container)["restartCount"].as_i64().unwrap_or(-1)
}

#[test]
fn containers_are_resized_in_place_or_started_anew_as_they_wish() {
    let Some(node) = node() else { return };
    let spec =
        json!({"containers": [sized("stays", 200, 64, "NotRequired"), sized("anew", 200, 64, "RestartContainer")]});
    create(&node, &pod("two", spec));
    let before = wait_running(&node, "two");
    let larger = amounts(400, 128);
    resize(&node, "two", "stays", &larger);
    let now = wait_sized(&node, "two", "stays", &larger);
    assert_eq!(identity(&now), identity(&before), "the same containers");
    let own = [MEMORY, QUOTA].map(|file| kernel(&node, &now, Some("stays"), file));
    assert_eq!(own, [128 << 20, 40_000]);
    let whole = [MEMORY, QUOTA].map(|file| kernel(&node, &now, None, file));
    assert_eq!(whole, [192 << 20, 60_000]);
    wait_reasons(&node, "two", &["ResizeStarted", "ResizeCompleted"]);

    // The processor in place, memory not.
    resize(&node, "two", "anew", &amounts(300, 64));
    let now = wait_sized(&node, "two", "anew", &amounts(300, 64));
    assert_eq!(restarts(&now, "anew"), 0);
    resize(&node, "two", "anew", &amounts(300, 96));
    let now = wait_sized(&node, "two", "anew", &amounts(300, 96));
    assert_eq!((restarts(&now, "anew"), restarts(&now, "stays")), (1, 0));
    assert_eq!(kernel(&node, &now, Some("anew"), MEMORY), 96 << 20);
    assert_eq!(kernel(&node, &now, None, MEMORY), 224 << 20);

    // Less than is in use is refused, and the container lives.
    let tiny = json!({"requests": {"cpu": "100m", "memory": "64Ki"}, "limits": {"cpu": "400m", "memory": "64Ki"}});
    resize(&node, "two", "stays", &tiny);
    let now = wait(&node, "two", "the resize to fail", |p| {
        let told = condition(p, "PodResizeInProgress");
        (told["reason"] == "Error").then(|| (p.clone(), told["message"].as_str().unwrap_or_default().to_owned()))
    });
    assert!(now.1.starts_with("cannot decrease memory limits: "), "{}", now.1);
    assert_eq!(kernel(&node, &now.0, Some("stays"), MEMORY), 128 << 20);
    resize(&node, "two", "stays", &amounts(200, 64));
    let now = wait_sized(&node, "two", "stays", &amounts(200, 64));
    assert_eq!((kernel(&node, &now, None, MEMORY), restarts(&now, "stays")), (160 << 20, 0));
}

#[test]
fn what_does_not_fit_waits_also_over_a_death_of_the_daemon() {
    let Some(mut node) = node() else { return };
    let all = node.cluster.admin().get("/api/v1/nodes/bed").expect("the node");
    let room: u64 = all["status"]["allocatable"]["cpu"].as_str().and_then(|n| n.parse().ok()).expect("whole cores");
    let of = |share: u64| json!({"requests": {"cpu": format!("{}m", room * share * 10), "memory": "16Mi"}});
    for (name, share) in [("big", 60), ("small", 20)] {
        let main = shell("main", LASTS, json!({"resources": of(share)}));
        create(&node, &pod(name, json!({"containers": [main]})));
        wait_running(&node, name);
    }
    resize(&node, "small", "main", &of(60));
    let waits = |pod: &Value| {
        let told = condition(pod, "PodResizePending");
        (told["reason"] == "Deferred" && told["message"].as_str().is_some_and(|m| m.contains("cpu")))
            .then(|| pod.clone())
    };
    let before = wait(&node, "small", "the resize to wait", waits);
    wait_reasons(&node, "small", &["ResizeDeferred"]);
    node.bosun.kill();
    node.start_again().unwrap_or_else(|e| panic!("{e}"));
    node.wait_ready(SOON).unwrap_or_else(|e| panic!("{e}"));
    let after = wait(&node, "small", "the resize to wait still", waits);
    assert_eq!(status(&after, "main")["allocatedResources"], of(20)["requests"], "what it was granted before");
    assert_eq!(identity(&after), identity(&before));
    node.cluster.admin().delete(&format!("{PODS}/big")).expect("deleted");
    let now = wait_sized(&node, "small", "main", &of(60));
    assert_eq!(identity(&now), identity(&before), "in place");
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |n| n.parse().expect("a number"))
}
