//! What the API server holds of an evicted pod, without what was measured: to be compared with a kubelet's.

use serde_json::{Map, Value, json};

use crate::node::Node;
use crate::served::{get, wait_failed};

/// Status and events about the end of a pod that has failed or will.
pub(crate) fn told(node: &Node, name: &str) -> Value {
    let status = wait_failed(node, name)["status"].clone();
    let disrupted = condition(&status, "DisruptionTarget");
    json!({
        "reason": status["reason"], "message": plain(&status["message"]),
        "disruption": [disrupted["status"], disrupted["reason"], plain(&disrupted["message"])],
        "events": events(node, name),
    })
}

/// Seconds since the beginning of time at which it was chosen.
pub(crate) fn chosen_at(node: &Node, name: &str) -> String {
    let status = wait_failed(node, name)["status"].clone();
    condition(&status, "DisruptionTarget")["lastTransitionTime"].as_str().expect("a time").to_owned()
}

fn condition(status: &Value, kind: &str) -> Value {
    let all = status["conditions"].as_array();
    all.into_iter().flatten().find(|c| c["type"] == kind).cloned().unwrap_or_default()
}

fn events(node: &Node, name: &str) -> Value {
    node.wait(&format!("event Evicted of {name}"), || {
        let list = get(node, "namespaces/default/events")?;
        let is_it = |e: &&Value| e["involvedObject"]["name"] == name && e["reason"] == "Evicted";
        let mut all: Vec<Value> = list["items"].as_array().into_iter().flatten().filter(is_it).map(event).collect();
        all.dedup();
        if all.is_empty() { Err(list.to_string()) } else { Ok(json!(all)) }
    })
}

fn event(event: &Value) -> Value {
    let annotations: Map<String, Value> = event["metadata"]["annotations"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), plain(value)))
        .collect();
    json!({"type": event["type"], "message": plain(&event["message"]), "annotations": annotations})
}

/// A text without amounts that were measured.
fn plain(text: &Value) -> Value {
    let Some(text) = text.as_str() else { return text.clone() };
    let mut out = text.to_owned();
    for phrase in ["available: ", "was using "] {
        if let Some(at) = out.find(phrase).map(|at| at + phrase.len()) {
            let end = out[at..].find([',', '.', ' ']).map_or(out.len(), |n| at + n);
            out.replace_range(at..end, "N");
        }
    }
    let is_amount = out.starts_with(|c: char| c.is_ascii_digit()) && out.chars().all(|c| c.is_ascii_alphanumeric());
    json!(if is_amount { "N" } else { &out })
}
