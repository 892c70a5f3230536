//! One pod's life as it can be seen from outside: calls to the runtime, versions of the object, events. Two of them are
//! compared after ids, times and addresses were replaced.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::align::align;
use crate::calls::call_differences;
use crate::normal::{Dirs, compare, steps};
use crate::recording::{Call, Case};
use crate::server;
use crate::status::{by_name, condition_order, tidy};

/// What was seen of one pod.
#[derive(Clone, Debug, Default)]
pub struct Life {
    /// Mutating calls.
    pub calls: Vec<Call>,
    /// Where its node keeps files.
    pub dirs: Dirs,
    /// UID.
    pub uid: String,
    /// Versions that a watch saw: `event`, `deletionTimestamp`, `deletionGracePeriodSeconds`, `status`.
    pub history: Vec<Value>,
    /// Reason and message of events with the container that they are about, each once, in the order of their first occurrence.
    pub events: Vec<(String, String)>,
    /// The object that the node made for a static pod.
    pub mirror: Option<Value>,
}

impl From<&Case> for Life {
    fn from(case: &Case) -> Self {
        Life {
            calls: case.calls.clone(),
            dirs: Dirs::default(),
            uid: case.uid.clone(),
            history: case.history.clone(),
            events: case.events.clone(),
            mirror: case.mirror.clone(),
        }
    }
}

/// Texts that differ from run to run, with their stand-ins.
fn names(life: &Life) -> Vec<(String, &'static str)> {
    let mut out = vec![(life.uid.clone(), "<uid>")];
    let statuses = || life.history.iter().map(|v| &v["status"]).chain(life.mirror.iter().map(|m| &m["status"]));
    for (field, stand_in) in [("podIP", "<pod ip>"), ("hostIP", "<node ip>")] {
        let found: BTreeSet<&str> = statuses().filter_map(|s| s[field].as_str()).filter(|s| !s.is_empty()).collect();
        // The pod's own may be the node's.
        out.extend(found.into_iter().map(|ip| (ip.to_owned(), stand_in)));
    }
    out.retain(|(text, _)| !text.is_empty());
    out
}

/// `kube-api-access-zd69c` without its random end.
fn without_token_name(text: &str) -> String {
    const NAME: &str = "kube-api-access-";
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(NAME) {
        let end = at + NAME.len();
        let random = rest[end..].bytes().take(5).take_while(u8::is_ascii_alphanumeric).count();
        out.push_str(&rest[..end]);
        out.push_str("<random>");
        rest = &rest[end + random..];
    }
    out + rest
}

fn each_string(value: &mut Value, f: &impl Fn(&str) -> String) {
    match value {
        Value::String(s) => *s = f(s),
        Value::Array(items) => items.iter_mut().for_each(|v| each_string(v, f)),
        Value::Object(map) => map.values_mut().for_each(|v| each_string(v, f)),
        _ => {}
    }
}

fn replaced(text: &str, names: &[(String, &str)]) -> String {
    let text = names.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from.as_str(), to));
    without_token_name(&text)
}

/// A bytes field of protobuf JSON as text; as it is when it is none.
fn decoded(base64: &str) -> String {
    let bytes = BASE64.decode(base64).ok();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| base64.to_owned())
}

/// The calls in the common form; images by the name that the pod gives them, variables as text.
fn calls(life: &Life, minor: u32) -> Vec<crate::normal::Step> {
    let names = names(life);
    let mut steps = steps(&life.calls, &life.dirs, None);
    for step in &mut steps {
        let image = &mut step.request["config"]["image"];
        if image["user_specified_image"].is_string() {
            image["image"] = json!("<image>");
        }
        if let Some(map) = step.request.as_object_mut().filter(|m| m.get("config").is_some_and(Value::is_null)) {
            map.remove("config");
        }
        for holder in ["config", "sandbox_config", "image"] {
            let Some(annotations) = step.request.get_mut(holder).and_then(|c| c.get_mut("annotations")) else {
                continue;
            };
            server::strip_annotations(annotations, minor);
            if let Some(map) = annotations.as_object_mut() {
                map.remove("kubectl.kubernetes.io/last-applied-configuration");
            }
        }
        for env in step.request.pointer_mut("/config/envs").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(text) = env["value"].as_str().map(decoded) {
                env["value"] = json!(text);
            }
        }
        each_string(&mut step.request, &|s| replaced(s, &names));
    }
    steps
}

fn status_of(raw: &Value, names: &[(String, &str)], minor: u32) -> Value {
    let mut status = raw.clone();
    server::strip_pod_status(&mut status, minor);
    tidy(&mut status, "no uid");
    each_string(&mut status, &|s| replaced(s, names));
    let order = condition_order(&status);
    by_name(&mut status);
    for list in ["containerStatuses", "initContainerStatuses"] {
        for container in status[list].as_object_mut().into_iter().flat_map(|m| m.values_mut()) {
            if container["imageID"].as_str().is_some_and(|id| !id.is_empty()) {
                container["imageID"] = json!("<set>");
            }
        }
    }
    if let Some(map) = status.as_object_mut() {
        map.retain(|_, v| !v.is_null());
        if !order.is_empty() {
            map.insert("order of conditions".to_owned(), json!(order));
        }
    }
    status
}

/// The versions in the common form; one that adds nothing goes.
fn versions(life: &Life, minor: u32) -> Vec<Value> {
    let names = names(life);
    let mut out: Vec<Value> = Vec::new();
    for raw in &life.history {
        let version = json!({
            "event": raw["event"],
            "deleting": !raw["deletionTimestamp"].is_null(),
            "grace": raw["deletionGracePeriodSeconds"],
            "status": status_of(&raw["status"], &names, minor),
        });
        if out.last() != Some(&version) {
            out.push(version);
        }
    }
    out
}

/// What a version is about, in one line.
fn headline(version: &Value) -> String {
    let status = &version["status"];
    let mut words = vec![version["event"].as_str().unwrap_or_default().to_owned()];
    if version["deleting"] == true {
        words.push(format!("deleting({})", version["grace"]));
    }
    words.push(status["phase"].as_str().unwrap_or("no phase").to_owned());
    words.extend(status["reason"].as_str().map(str::to_owned));
    for condition in ["PodReadyToStartContainers", "Initialized", "Ready"] {
        if status["conditions"][condition]["status"] == "True" {
            words.push(condition.to_owned());
        }
    }
    for list in ["initContainerStatuses", "containerStatuses"] {
        for (name, container) in status[list].as_object().into_iter().flatten() {
            let state = container["state"].as_object().and_then(|s| s.iter().next());
            let text = state.map_or_else(String::new, |(kind, s)| {
                let reason = s["reason"].as_str().map(|r| format!(" {r}")).unwrap_or_default();
                let code = s["exitCode"].as_i64().map(|c| format!(" {c}")).unwrap_or_default();
                format!("{kind}{reason}{code}")
            });
            let marks = [("ready", "ready"), ("started", "started")];
            let marks: String =
                marks.iter().filter(|(f, _)| container[*f] == true).map(|(_, m)| format!(" {m}")).collect();
            words.push(format!("{name}#{}={text}{marks}", container["restartCount"]));
        }
    }
    words.join(" ")
}

fn history_differences(want: &Life, got: &Life, minor: u32) -> Vec<String> {
    let (want, got) = (versions(want, minor), versions(got, minor));
    let heads = |versions: &[Value]| versions.iter().map(headline).collect::<Vec<_>>();
    let (want_heads, got_heads) = (heads(&want), heads(&got));
    let mut out = Vec::new();
    for pair in align(&want_heads, &got_heads) {
        match pair {
            (Some(w), Some(g)) => {
                compare(&format!("version [{}]", want_heads[w]), &want[w], &got[g], &mut out);
            }
            (Some(w), None) => out.push(format!("version [{}]: recorded, ours not", want_heads[w])),
            (None, Some(g)) => out.push(format!("version [{}]: ours, not recorded", got_heads[g])),
            (None, None) => {}
        }
    }
    out
}

fn event_differences(want: &Life, got: &Life) -> Vec<String> {
    let of = |life: &Life, path: &str| -> Vec<String> {
        let names = names(life);
        let mut out: Vec<String> = Vec::new();
        for (event, _) in life.events.iter().filter(|(_, p)| p == path) {
            let event = replaced(event, &names);
            if !out.contains(&event) {
                out.push(event);
            }
        }
        out
    };
    let paths: BTreeSet<&String> = want.events.iter().chain(&got.events).map(|(_, path)| path).collect();
    let mut out = Vec::new();
    for path in paths {
        let (w, g) = (of(want, path), of(got, path));
        let about = if path.is_empty() { "the pod" } else { path };
        for pair in align(&w, &g) {
            match pair {
                (Some(i), None) => out.push(format!("event of {about}: recorded, ours not: {}", w[i])),
                (None, Some(i)) => out.push(format!("event of {about}: ours, not recorded: {}", g[i])),
                _ => {}
            }
        }
    }
    out
}

/// The mirror object: what it says of itself and of its pod.
fn mirror_differences(want: &Life, got: &Life, minor: u32) -> Vec<String> {
    let (Some(w), Some(g)) = (&want.mirror, &got.mirror) else {
        return match (&want.mirror, &got.mirror) {
            (Some(_), None) => vec!["mirror: recorded, ours not".to_owned()],
            _ => Vec::new(),
        };
    };
    let form = |object: &Value, life: &Life| {
        let mut names = names(life);
        names.extend(object["metadata"]["uid"].as_str().map(|uid| (uid.to_owned(), "<mirror uid>")));
        let status = status_of(&object["status"], &names, minor);
        let mut object = object.clone();
        object["status"] = status;
        server::strip_annotations(&mut object["metadata"]["annotations"], minor);
        let keep = ["annotations", "labels", "name", "namespace", "ownerReferences"];
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|key, _| keep.contains(&key.as_str()));
        }
        for (pointer, stand_in) in [
            ("/metadata/annotations/kubernetes.io~1config.seen", "<set>"),
            ("/metadata/ownerReferences/0/uid", "<node uid>"),
        ] {
            if let Some(value) = object.pointer_mut(pointer) {
                *value = json!(stand_in);
            }
        }
        each_string(&mut object, &|s| replaced(s, &names));
        object
    };
    let mut out = Vec::new();
    compare("mirror", &form(w, want), &form(g, got), &mut out);
    out
}

/// Everything that differs, one line each. `minor`: of the API server that ours was seen through.
pub fn differences(want: &Life, got: &Life, minor: u32) -> Vec<String> {
    let mut out = call_differences(&calls(want, minor), &calls(got, minor));
    if !want.history.is_empty() {
        out.extend(history_differences(want, got, minor));
    }
    out.extend(event_differences(want, got));
    out.extend(mirror_differences(want, got, minor));
    out
}
