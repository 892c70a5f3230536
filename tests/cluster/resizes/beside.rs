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

const RECORDING: &str = "kubelet-1.36.2.json";
const OF_INIT: &str = "init-kubelet-1.36.2.json";

/// A pod, what is asked for then, the last event of it, and the container that is looked at.
struct Case {
    name: &'static str,
    spec: Value,
    wish: Value,
    until: &'static str,
    of: &'static str,
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
    let case = |name, spec, wish, until| Case { name, spec, wish, until, of: "main" };
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

/// Containers that begin before the others: sidecars, and one that is to end. Both are resized while the pod waits for them, too.
fn cases_of_init() -> Vec<Case> {
    let sidecar = |policy: &str| {
        let mut sidecar = sized("side", 100, 64, policy);
        sidecar["restartPolicy"] = json!("Always");
        sidecar
    };
    let first = || sized("first", 100, 64, "NotRequired");
    let spec = |init: Value| json!({"initContainers": init, "containers": [sized("main", 100, 64, "NotRequired")]});
    let wish = |name: &str| json!({"initContainers": [{"name": name, "resources": amounts(200, 128)}]});
    let case =
        |name, init, of: &'static str| Case { name, spec: spec(init), wish: wish(of), until: "ResizeCompleted", of };
    // A kubelet does not count them among those that are being resized: it tells of the end before it begins, with whatever it has then.
    let untold = |case: Case| Case { until: "ResizeStarted", ..case };
    vec![
        case("sidecar-shown", json!([sidecar("NotRequired")]), "side"),
        case("sidecar-restarts", json!([sidecar("RestartContainer")]), "side"),
        case("sidecar-early", json!([sidecar("NotRequired"), first()]), "side"),
        untold(case("init", json!([first()]), "first")),
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
        let named = asked.into_iter().filter(|c| c["resources"]["requests"].is_object());
        named.filter_map(move |c| {
            let status = shown.iter().find(|s| s["name"] == c["name"]);
            // Of one that has not had its turn nothing is shown.
            let waits = status.is_some_and(|s| s["state"]["waiting"]["reason"] == "PodInitializing");
            (!waits).then(|| json!({"resources": c["resources"], "status": status.map(|s| s["resources"].clone())}))
        })
    };
    lists.into_iter().flat_map(of).collect()
}

fn told(node: &ClusterNode, case: &Case, most: &str) -> Value {
    let name = case.name;
    create(node, &pod(name, case.spec.clone()));
    let waits = case.spec["initContainers"].as_array().into_iter().flatten().any(|c| c["name"] == "first");
    if waits {
        let up = |pod: &Value| ["first", case.of].iter().all(|c| status(pod, c)["state"]["running"].is_object());
        wait(node, name, "its first containers to run", |pod| up(pod).then_some(()));
    } else {
        wait_running(node, name);
    }
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
                quiet && status(pod, case.of)["state"]["running"].is_object() && shown_as_asked(pod).iter().all(same)
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
    let limits = [MEMORY, QUOTA].map(|file| [Some(case.of), None].map(|of| kernel(node, &pod, of, file)));
    let mut events = events(node, name, most);
    events.retain(|e| case.until != "ResizeStarted" || e[1] == case.until);
    let seen = json!({
        "events": events, "conditions": conditions,
        "containers": of("containerStatuses"), "init": of("initContainerStatuses"),
        "pod": [of_pod, pod["status"]["allocatedResources"]],
        "kernel": limits,
        "restarts": restarts(&pod, case.of),
    });
    delete(node, name);
    wait_gone(node, name);
    seen
}

/// `None` where the server is too old for all of it, which is told.
fn seen(agent: Agent, cases: impl FnOnce(&str) -> Vec<Case>) -> Option<Value> {
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

fn recording(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/resize").join(file)
}

fn compare(seen: &Value, file: &str) {
    let text = std::fs::read_to_string(recording(file)).expect("the recording");
    let recorded: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(*seen, recorded, "{seen}");
}

#[test]
fn users_see_of_a_resize_what_they_see_of_a_kubelet() {
    let Some(seen) = seen(Agent::Bosun, cases) else { return };
    compare(&seen, RECORDING);
}

#[test]
fn users_see_of_a_resize_of_init_containers_what_they_see_of_a_kubelet() {
    let Some(seen) = seen(Agent::Bosun, |_| cases_of_init()) else { return };
    compare(&seen, OF_INIT);
}

#[cfg(feature = "kubelet")]
fn record(seen: &Value, file: &str) {
    let path = recording(file);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
    std::fs::write(path, serde_json::to_string_pretty(seen).expect("JSON") + "\n").expect("the recording");
}

#[cfg(feature = "kubelet")]
#[test]
fn record_the_resizes_of_a_kubelet() {
    let _tunables = crate::beside::Tunables::keep();
    record(&seen(Agent::Kubelet, cases).expect("a server of 1.36"), RECORDING);
}

#[cfg(feature = "kubelet")]
#[test]
fn record_the_resizes_of_init_containers_of_a_kubelet() {
    let _tunables = crate::beside::Tunables::keep();
    record(&seen(Agent::Kubelet, |_| cases_of_init()).expect("a server of 1.36"), OF_INIT);
}
