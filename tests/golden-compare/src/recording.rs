//! Reads `tests/golden`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The recorded node.
pub const NODE: &str = "gold-node";

/// One mutating call, from whichever side.
#[derive(Clone, Debug)]
pub struct Call {
    pub rpc: String,
    /// Protobuf JSON with the field names of the proto file.
    pub request: Value,
    /// Seconds.
    pub start: f64,
    /// Seconds; infinite while unanswered.
    pub end: f64,
    /// Id of what it made, when that is known.
    pub made: Option<String>,
}

/// One recorded pod.
pub struct Case {
    pub name: String,
    pub manifest: String,
    pub calls: Vec<Call>,
    /// UID of the pod.
    pub uid: String,
    /// The status of the pod as its own kubelet showed it, some seconds after the start.
    pub status: Value,
    /// The last status that a watch saw; unknown for static pods.
    pub last: Option<Value>,
    /// Every version that a watch saw; none for static pods.
    pub history: Vec<Value>,
    /// The object that the kubelet made for a static pod.
    pub mirror: Option<Value>,
    /// When the pod was deleted or its manifest taken away: seconds after its first call to the runtime, or after its creation.
    pub lived_s: f64,
    /// Reasons and messages of events with the container that they are about, in the order of their first occurrence.
    pub events: Vec<(String, String)>,
}

impl Case {
    /// Whether the pod came from the static pod folder.
    pub fn is_static(&self) -> bool {
        self.name.starts_with("static-")
    }

    /// Images that the recorded runtime had, with their ids.
    pub fn images(&self) -> BTreeMap<String, String> {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let specs = self.calls.iter().map(|c| &c.request["config"]["image"]).filter(|i| i.is_object());
        specs.map(|i| (text(&i["user_specified_image"]), text(&i["image"]))).collect()
    }

    /// The manifest as a file of the static pod folder: the pod alone, not bound to a node.
    pub fn static_manifest(&self) -> String {
        let pod = self.manifest.split("---\n").find(|d| d.contains("kind: Pod\n")).expect("a pod in the manifest");
        pod.lines().filter(|l| *l != "  nodeName: gold-node").fold(String::new(), |all, line| all + line + "\n")
    }

    /// Seconds from the first call to the last start of a container.
    pub fn last_start(&self) -> f64 {
        let first = self.calls.first().map_or(0.0, |c| c.start);
        let starts = self.calls.iter().filter(|c| c.rpc == "StartContainer").map(|c| c.start - first);
        starts.fold(0.0, f64::max)
    }
}

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/kubelet-1.36.2")
}

fn call(line: &str) -> Call {
    let v: Value = serde_json::from_str(line).expect("a recorded call");
    let start = v["t"].as_f64().expect("a start time");
    let made = ["pod_sandbox_id", "container_id"].iter().find_map(|f| v["response"][f].as_str());
    Call {
        made: made.map(str::to_owned),
        rpc: v["rpc"].as_str().expect("a method").to_owned(),
        request: v["request"].clone(),
        start,
        end: start + v["ms"].as_f64().expect("a duration") / 1000.0,
    }
}

/// The case of this name, calls in the order of their start.
pub fn case(name: &str) -> Case {
    let read = |file: &str| {
        let path = dir().join(name).join(file);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    // A pod that was refused made no calls.
    let lines = if dir().join(name).join("cri.jsonl").exists() { read("cri.jsonl") } else { String::new() };
    let mut calls: Vec<_> = lines.lines().map(call).collect();
    calls.sort_by(|a, b| a.start.total_cmp(&b.start));
    let json = |file: &str| -> Value { serde_json::from_str(&read(file)).expect("JSON") };
    let pod = if name.starts_with("static-") { json("kubelet-pods-endpoint.json") } else { json("pod.json") };
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let events = json("events.json");
    let events = events
        .as_array()
        .expect("a list")
        .iter()
        .map(|e| (format!("{}: {}", text(&e["reason"]), text(&e["message"])), text(&e["fieldPath"])));
    let history = (!name.starts_with("static-")).then(|| json("history.json"));
    let history: Vec<Value> = history.and_then(|h| h.as_array().cloned()).unwrap_or_default();
    let last = history.last().map(|v| v["status"].clone());
    let mirror = dir().join(name).join("mirror-pod.json").exists().then(|| json("mirror-pod.json"));
    Case {
        name: name.to_owned(),
        manifest: read("manifest.yaml"),
        uid: text(&pod["metadata"]["uid"]),
        status: pod["status"].clone(),
        last,
        lived_s: lived(&history, &pod, &calls, name),
        calls,
        history,
        mirror,
        events: events.collect(),
    }
}

/// Seconds of the day of an API time.
fn seconds(time: &Value) -> Option<f64> {
    let text = time.as_str()?.split_once('T')?.1.trim_end_matches('Z');
    let mut parts = text.split(':').map(|p| p.parse::<f64>().ok());
    Some(parts.next()?? * 3600.0 + parts.next()?? * 60.0 + parts.next()??)
}

/// How long a pod was wanted, from its first call to the runtime on, or from its creation when there was none. Times of the API
/// are whole seconds, so half of one is added.
fn lived(history: &[Value], pod: &Value, calls: &[Call], name: &str) -> f64 {
    let deleted = |v: &Value| Some(seconds(&v["deletionTimestamp"])? - v["deletionGracePeriodSeconds"].as_f64()?);
    let deleted = history.iter().find_map(deleted);
    let first = calls.first().map(|c| c.start % 86400.0);
    match (first.or_else(|| seconds(&pod["metadata"]["creationTimestamp"])), deleted) {
        // The second kill of its container had begun; any moment of its five seconds will do, and a slow machine needs one.
        _ if name == "hooks" => 9.0,
        (Some(first), Some(deleted)) => deleted + 0.5 - first,
        // The second kill has ended, and the back-off lasts.
        _ if name == "static-hooks" => 14.5,
        // Static pods were looked at for twelve seconds, but for the one that is restarted.
        _ if name == "static-run-once-fail" => 28.0,
        _ => 12.1,
    }
}

/// Names of all cases.
pub fn names() -> Vec<String> {
    let entries = std::fs::read_dir(dir()).expect("golden data").map(|e| e.expect("an entry").path());
    let cases = entries.filter(|p| p.join("manifest.yaml").exists());
    let mut names: Vec<_> = cases.map(|p| p.file_name().expect("a name").to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The recorded Node object.
pub fn golden_node() -> Value {
    let text = std::fs::read_to_string(dir().join("_node/node.json")).expect("the recorded node");
    serde_json::from_str(&text).expect("JSON")
}
