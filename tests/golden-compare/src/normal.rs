//! Brings two sequences of calls into one form.
//!
//! - Ids become roles: a container id becomes `app#0` (name and attempt), a sandbox id `sandbox#0`, the pod's UID `<uid>`.
//! - Random names of termination log files become `<random>`, `kubernetes.io/config.seen` goes.
//! - Variables are sorted; those of services go (a node without API server has none).
//! - Calls of one method that overlap in time are sorted by subject; repeats of an exec probe count once; log rotation goes.
//! - A pod that was recorded from the API is turned into what the same manifest is as a static pod: the node's name is
//!   appended to its name, the source is `file`, the hash annotation appears, the service account's volume goes.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::recording::Call;

/// Where the API mounts the token of the pod's service account.
pub const TOKEN_DIR: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Where the node keeps its files in this run; the recording has the defaults.
#[derive(Clone, Debug)]
pub struct Dirs {
    pub root: String,
    pub logs: String,
    /// Parent of all cgroups of pods.
    pub cgroups: String,
}

impl Default for Dirs {
    fn default() -> Self {
        Self { root: "/var/lib/kubelet".to_owned(), logs: "/var/log/pods".to_owned(), cgroups: "/gold".to_owned() }
    }
}

/// One call in the common form.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub rpc: String,
    /// Role of what it is about.
    pub subject: String,
    pub request: Value,
    span: (f64, f64),
}

/// Name and attempt.
fn role(config: &Value, name: &str) -> String {
    format!("{name}#{}", config["metadata"]["attempt"].as_u64().unwrap_or(0))
}

/// Gives ids their roles in the order of their first use: an id first met belongs to what was made last.
#[derive(Default)]
struct Roles {
    names: BTreeMap<String, String>,
    last_sandbox: String,
    last_container: String,
}

impl Roles {
    fn learn(&mut self, call: &Call) {
        let config = &call.request["config"];
        match call.rpc.as_str() {
            "RunPodSandbox" => self.last_sandbox = role(config, "sandbox"),
            "CreateContainer" => {
                self.last_container = role(config, config["metadata"]["name"].as_str().unwrap_or_default());
            }
            _ => return,
        }
        if let Some(id) = &call.made {
            let made = if call.rpc == "RunPodSandbox" { &self.last_sandbox } else { &self.last_container };
            self.names.insert(id.clone(), made.clone());
        }
    }

    fn of(&mut self, field: &str, id: &str) -> String {
        let last = if field == "pod_sandbox_id" { &self.last_sandbox } else { &self.last_container };
        self.names.entry(id.to_owned()).or_insert_with(|| last.clone()).clone()
    }

    fn apply(&mut self, request: &mut Value) -> Option<String> {
        let mut subject = None;
        for field in ["pod_sandbox_id", "container_id"] {
            if let Some(id) = request[field].as_str().map(str::to_owned) {
                let role = self.of(field, &id);
                request[field] = json!(role);
                subject = Some(role);
            }
        }
        subject
    }
}

fn uid(calls: &[Call]) -> String {
    let first = calls.iter().find(|c| c.rpc == "RunPodSandbox");
    first.and_then(|c| c.request["config"]["metadata"]["uid"].as_str()).unwrap_or("no uid").to_owned()
}

pub fn each_string(value: &mut Value, f: &dyn Fn(&str) -> String) {
    match value {
        Value::String(s) => *s = f(s),
        Value::Array(items) => items.iter_mut().for_each(|v| each_string(v, f)),
        Value::Object(map) => map.values_mut().for_each(|v| each_string(v, f)),
        _ => {}
    }
}

/// `.../containers/app/0a1b2c3d` without the random part.
fn without_random(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((dir, file))
            if dir.contains("/containers/") && file.len() == 8 && file.bytes().all(|b| b.is_ascii_hexdigit()) =>
        {
            format!("{dir}/<random>")
        }
        _ => path.to_owned(),
    }
}

fn is_service_variable(env: &Value) -> bool {
    let key = env["key"].as_str().unwrap_or_default();
    ["KUBERNETES_SERVICE_", "KUBERNETES_PORT", "WEB_SERVICE_", "WEB_PORT"].iter().any(|p| key.starts_with(p))
}

fn annotations(config: &mut Value) -> Option<&mut Map<String, Value>> {
    config.get_mut("annotations").and_then(Value::as_object_mut)
}

fn tidy_container(config: &mut Value) {
    if let Some(envs) = config.get_mut("envs").and_then(Value::as_array_mut) {
        envs.retain(|e| !is_service_variable(e));
        envs.sort_by_key(|e| e["key"].as_str().unwrap_or_default().to_owned());
        if envs.is_empty() {
            config.as_object_mut().expect("an object").remove("envs");
        }
    }
}

/// Annotations of the pod, wherever a request carries them: in a sandbox's config and with a pull.
fn pod_annotations(request: &mut Value, change: impl Fn(&mut Map<String, Value>)) {
    for holder in ["config", "sandbox_config", "image"] {
        let of_pod = |v: &Value| v["annotations"].get("kubernetes.io/config.source").is_some();
        if let Some(holder) = request.get_mut(holder).filter(|v| of_pod(v)) {
            annotations(holder).into_iter().for_each(&change);
        }
    }
}

/// Turns a pod of the API into the static pod of the same manifest.
fn as_static(request: &mut Value, node: &str) {
    for config in ["config", "sandbox_config"] {
        let Some(config) = request.get_mut(config).filter(|c| c.is_object()) else { continue };
        let name = config["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let label = config["labels"]["io.kubernetes.pod.name"].as_str().unwrap_or_default().to_owned();
        let renamed = format!("{label}-{node}");
        if name == label {
            config["metadata"]["name"] = json!(renamed);
            let dir = config["log_directory"].as_str().unwrap_or_default().to_owned();
            config["log_directory"] = json!(dir.replace(&format!("_{label}_"), &format!("_{renamed}_")));
            if config["hostname"] == json!(label) {
                config["hostname"] = json!(renamed);
            }
        }
        config["labels"]["io.kubernetes.pod.name"] = json!(renamed);
        if let Some(mounts) = config.get_mut("mounts").and_then(Value::as_array_mut) {
            mounts.retain(|m| m["container_path"] != TOKEN_DIR);
        }
    }
    pod_annotations(request, |annotations| {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        annotations.insert("kubernetes.io/config.source".to_owned(), json!("file"));
        annotations.insert("kubernetes.io/config.hash".to_owned(), json!("<uid>"));
    });
}

/// Sorts calls of one method that ran at the same time, and drops repeats of a probe.
fn settle(steps: Vec<Step>) -> Vec<Step> {
    let mut out: Vec<Step> = Vec::new();
    let mut group = 0;
    for step in steps {
        let parallel = out.get(group).is_some_and(|first: &Step| first.rpc == step.rpc && step.span.0 < first.span.1);
        let repeat = out
            .last()
            .is_some_and(|last| step.rpc == "ExecSync" && last.rpc == step.rpc && last.request == step.request);
        if repeat {
            continue;
        }
        if !parallel {
            group = out.len();
        }
        out.push(step);
        out[group..].sort_by(|a, b| a.subject.cmp(&b.subject));
    }
    out
}

/// The calls in the common form. `node` is the node's name when the calls are of a pod of the API.
pub fn steps(calls: &[Call], dirs: &Dirs, node: Option<&str>) -> Vec<Step> {
    let uid = uid(calls);
    let mut roles = Roles::default();
    let mut out = Vec::new();
    for call in calls {
        if call.rpc == "ReopenContainerLog" {
            continue;
        }
        roles.learn(call);
        let mut request = call.request.clone();
        let made = match call.rpc.as_str() {
            "RunPodSandbox" => Some(roles.last_sandbox.clone()),
            "CreateContainer" => Some(roles.last_container.clone()),
            _ => None,
        };
        let met = roles.apply(&mut request);
        let plain = Dirs::default();
        each_string(&mut request, &|s| {
            let s = s.replace(&uid, "<uid>").replace(&dirs.root, &plain.root).replace(&dirs.logs, &plain.logs);
            let s = s.replace(&format!("{}/", dirs.cgroups), &format!("{}/", plain.cgroups));
            without_random(&s)
        });
        if call.rpc == "CreateContainer" {
            tidy_container(&mut request["config"]);
        }
        pod_annotations(&mut request, |annotations| {
            annotations.remove("kubernetes.io/config.seen");
        });
        if let Some(node) = node {
            as_static(&mut request, node);
        }
        out.push(Step {
            rpc: call.rpc.clone(),
            subject: made.or(met).unwrap_or_default(),
            request,
            span: (call.start, call.end),
        });
    }
    settle(out)
}

/// Fields that differ, one line each.
pub fn compare(path: &str, want: &Value, got: &Value, out: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(w), Value::Object(g)) => {
            let keys: std::collections::BTreeSet<_> = w.keys().chain(g.keys()).collect();
            for key in keys {
                let side = |m: &Map<String, Value>| m.get(key).cloned().unwrap_or(Value::Null);
                compare(&format!("{path}.{key}"), &side(w), &side(g), out);
            }
        }
        (Value::Array(w), Value::Array(g)) if w.len() == g.len() => {
            for (i, (w, g)) in w.iter().zip(g).enumerate() {
                compare(&format!("{path}[{i}]"), w, g, out);
            }
        }
        (w, g) if w == g => {}
        (w, g) => out.push(format!("{path}: recorded {w}, ours {g}")),
    }
}

/// A call in a few words, e.g. `StopContainer app#0`.
pub fn title(step: &Step) -> String {
    format!("{} {}", step.rpc, step.subject)
}

fn titles(steps: &[Step]) -> Vec<String> {
    steps.iter().map(title).collect()
}

/// What differs: first the sequence, and when that is equal, the fields.
pub fn differences(recorded: &[Step], ours: &[Step]) -> Vec<String> {
    let (want, got) = (titles(recorded), titles(ours));
    if want != got {
        return vec![format!("recorded {}\n    ours {}", want.join(", "), got.join(", "))];
    }
    let mut out = Vec::new();
    for (w, g) in recorded.iter().zip(ours) {
        compare(&title(w), &w.request, &g.request, &mut out);
    }
    out
}
