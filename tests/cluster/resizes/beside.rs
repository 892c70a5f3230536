//! What users see of a resize, beside what they see of a Go kubelet.
//!
//! The recording in `tests/golden/resize` is a kubelet's. With a kubelet at hand (`KUBELET=PATH`) a test makes it anew.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use testbed::{BosunOptions, ClusterNode, ControlPlane, NodeOptions, wait_until};

use super::{MEMORY, QUOTA, amounts, kernel, restarts, sized, status};
use crate::beside::Agent;
use crate::node::{
    LASTS, PODS, SOON, condition, create, delete, kubectl, pod, shell, start_with, wait, wait_gone, wait_running,
};

const RECORDING: &str = "tests/golden/resize/kubelet-1.36.2.json";

/// A pod, what is asked for then, and the last event of it.
struct Case {
    name: &'static str,
    spec: Value,
    wish: Value,
    until: &'static str,
}

/// `most`: more than half of the processors, as the API writes it.
fn cases(most: &str) -> Vec<Case> {
    let containers = |all: Value| json!({"containers": all});
    let main = |resources: Value| json!({"containers": [{"name": "main", "resources": resources}]});
    let one = |cpu, memory, policy| containers(json!([sized("main", cpu, memory, policy)]));
    let done = "ResizeCompleted";
    let level = |cpu: &str| json!({"resources": {"limits": {"cpu": cpu, "memory": "64Mi"}, "requests": {"cpu": cpu, "memory": "64Mi"}}});
    let mut of_pod = containers(json!([shell("main", LASTS, json!({}))]));
    of_pod["resources"] = level("200m")["resources"].clone();
    let mut with_sidecar = one(100, 64, "NotRequired");
    let mut sidecar = sized("side", 100, 64, "NotRequired");
    sidecar["restartPolicy"] = json!("Always");
    with_sidecar["initContainers"] = json!([sidecar]);
    let requests = json!({"requests": {"cpu": "60m", "memory": "40Mi"}, "limits": {"cpu": "100m", "memory": "64Mi"}});
    let tiny = json!({"requests": {"cpu": "50m", "memory": "64Ki"}, "limits": {"cpu": "100m", "memory": "64Ki"}});
    let huge = json!({"requests": {"cpu": most, "memory": "32Mi"}, "limits": {"cpu": most, "memory": "64Mi"}});
    let side = json!({"initContainers": [{"name": "side", "resources": amounts(200, 128)}]});
    let case = |name, spec, wish, until| Case { name, spec, wish, until };
    vec![
        case("grows", one(100, 64, "NotRequired"), main(amounts(200, 128)), done),
        case("shrinks", one(200, 128, "NotRequired"), main(amounts(100, 64)), done),
        case("mixed", one(200, 64, "NotRequired"), main(amounts(100, 128)), done),
        case("restarts", one(100, 64, "RestartContainer"), main(amounts(100, 128)), done),
        case("requests", one(100, 64, "NotRequired"), main(requests), done),
        case("sidecar", with_sidecar, side, done),
        case("level", of_pod, level("300m"), done),
        case("waits", one(100, 64, "NotRequired"), main(huge), "ResizeDeferred"),
        case("in-use", one(100, 64, "NotRequired"), main(tiny), "ResizeError"),
    ]
}

/// Events of resizes of a pod: type, reason, message, in the order in which reasons came first.
fn events(node: &ClusterNode, name: &str, most: &str) -> Vec<Value> {
    let selector = format!("involvedObject.name={name}");
    let text = kubectl(node, &["get", "events", "--field-selector", &selector, "-o", "json"]);
    let list: Value = serde_json::from_str(&text).expect("JSON");
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let of_resize = |e: &&Value| e["reason"].as_str().is_some_and(|r| r.starts_with("Resize"));
    let mut all: Vec<Value> = items
        .iter()
        .filter(of_resize)
        .map(|e| json!([e["type"], e["reason"], without_measures(e["message"].as_str().unwrap_or_default(), most)]))
        .collect();
    all.sort_by_key(Value::to_string);
    all.dedup();
    // A kubelet may tell of the end, with the old resources, before it begins.
    let text = |e: &Value| e[2].as_str().unwrap_or_default().split_once(": ").map(|(_, rest)| rest.to_owned());
    let begun = all.iter().find(|e| e[1] == "ResizeStarted").and_then(text);
    all.retain(|e| e[1] != "ResizeCompleted" || text(e) == begun);
    all
}

/// A text without numbers of processors, and without what is in use: a kubelet speaks of the pod, of the container or of both, as
/// it has read them.
fn without_measures(text: &str, most: &str) -> String {
    let in_use = "cannot decrease memory limits: ";
    let mut out = text.replace(most, "MOST");
    if let Some(at) = out.find(in_use) {
        out.truncate(at + in_use.len());
    }
    for mark in ["requested: ", "used: ", "capacity: "] {
        let parts: Vec<&str> = out.split(mark).collect();
        let rest =
            parts[1..].iter().map(|part| format!("{mark}N{}", part.trim_start_matches(|c: char| c.is_ascii_digit())));
        out = std::iter::once(parts[0].to_owned()).chain(rest).collect();
    }
    out
}

/// Of each container that names resources: these, and what the status shows.
fn shown_as_asked(pod: &Value) -> Vec<Value> {
    let lists = [("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")];
    let of = |(list, statuses): (&str, &str)| {
        let shown = pod["status"][statuses].as_array().cloned().unwrap_or_default();
        let asked = pod["spec"][list].as_array().cloned().unwrap_or_default();
        asked.into_iter().filter(|c| c["resources"]["requests"].is_object()).map(move |c| {
            let status = shown.iter().find(|s| s["name"] == c["name"]).map(|s| s["resources"].clone());
            json!({"resources": c["resources"], "status": status})
        })
    };
    lists.into_iter().flat_map(of).collect()
}

fn told(node: &ClusterNode, case: &Case, most: &str) -> Value {
    let name = case.name;
    create(node, &pod(name, case.spec.clone()));
    wait_running(node, name);
    let wish = json!({"spec": case.wish});
    node.cluster.admin().patch(&format!("{PODS}/{name}/resize"), &wish).unwrap_or_else(|e| panic!("{name}: {e}"));
    let has_ended = || {
        let all = events(node, name, most);
        if all.iter().any(|e| e[1] == case.until) { Ok(()) } else { Err(format!("{all:?}")) }
    };
    wait_until(&format!("{} of {name}", case.until), 2 * SOON, has_ended).unwrap_or_else(|e| panic!("{e}"));
    // The status follows the event, or comes before it.
    let conditions = |pod: &Value| ["PodResizePending", "PodResizeInProgress"].map(|kind| condition(pod, kind));
    let shown = |pod: &Value| {
        let [pending, in_progress] = conditions(pod);
        let good = match case.until {
            "ResizeDeferred" => pending.is_object(),
            "ResizeError" => in_progress["reason"] == "Error",
            _ => {
                let same = |c: &Value| c["resources"] == c["status"];
                let quiet = pending.is_null() && in_progress.is_null();
                let level = &pod["spec"]["resources"]["limits"]["cpu"];
                let quiet = quiet && (level.is_null() || *level == pod["status"]["resources"]["limits"]["cpu"]);
                quiet && status(pod, "main")["state"]["running"].is_object() && shown_as_asked(pod).iter().all(same)
            }
        };
        good.then(|| pod.clone())
    };
    let pod = wait(node, name, "the status of the resize", shown);
    let conditions = conditions(&pod).map(|c| {
        let message = c["message"].as_str().map(|m| without_measures(m, most));
        c.is_object().then(|| json!([c["status"], c["reason"], message, c["observedGeneration"]]))
    });
    let of = |list: &str| -> Map<String, Value> {
        let all = pod["status"][list].as_array().into_iter().flatten();
        let one = |c: &Value| json!([c["resources"], c["allocatedResources"], c["restartCount"]]);
        all.map(|c| (c["name"].as_str().unwrap_or_default().to_owned(), one(c))).collect()
    };
    // A kubelet shows the request of memory of before for ever: see docs/compat.md.
    let mut of_pod = pod["status"]["resources"].clone();
    of_pod["requests"]["memory"] = Value::Null;
    let limits = [MEMORY, QUOTA].map(|file| [Some("main"), None].map(|of| kernel(node, &pod, of, file)));
    let seen = json!({
        "events": events(node, name, most), "conditions": conditions,
        "containers": of("containerStatuses"), "init": of("initContainerStatuses"),
        "pod": [of_pod, pod["status"]["allocatedResources"]],
        "kernel": limits,
        "restarts": restarts(&pod, "main"),
    });
    delete(node, name);
    wait_gone(node, name);
    seen
}

/// `None` where the server is too old for all of it, which is told.
fn seen(agent: Agent) -> Option<Value> {
    let minor = ControlPlane::find().unwrap_or_else(|e| panic!("{e}")).minor();
    if minor < 36 {
        eprintln!("left out: an API server of 1.{minor} does not resize pods as a whole, one of 1.36 does");
        return None;
    }
    let mut node = start_with(NodeOptions { bosun: BosunOptions::default(), ..NodeOptions::default() });
    agent.serve(&mut node);
    let bed = node.cluster.admin().get("/api/v1/nodes/bed").expect("the node");
    let cores: u64 = bed["status"]["allocatable"]["cpu"].as_str().and_then(|n| n.parse().ok()).expect("whole cores");
    let most = format!("{}m", cores * 700 + 1);
    let takes = json!({"resources": {"requests": {"cpu": most}}});
    create(&node, &pod("neighbour", json!({"containers": [shell("main", LASTS, takes)]})));
    wait_running(&node, "neighbour");
    let told = |case: &Case| (case.name.to_owned(), told(&node, case, &most));
    Some(cases(&most).iter().map(told).collect::<Map<_, _>>().into())
}

fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(RECORDING)
}

#[test]
fn users_see_of_a_resize_what_they_see_of_a_kubelet() {
    let Some(seen) = seen(Agent::Bosun) else { return };
    let text = std::fs::read_to_string(recording()).expect("the recording");
    let recorded: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(seen, recorded, "{seen}");
}

#[cfg(feature = "kubelet")]
#[test]
fn record_the_resizes_of_a_kubelet() {
    let _tunables = crate::beside::Tunables::keep();
    let seen = seen(Agent::Kubelet).expect("a server of 1.36");
    let path = recording();
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
    std::fs::write(path, serde_json::to_string_pretty(&seen).expect("JSON") + "\n").expect("the recording");
}
