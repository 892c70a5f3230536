//! The strategic merge patch from one Node to another (interfaces 9.3).

use model::core::Node;
use serde_json::{Map, Value, json};

/// The patch for `nodes/status` that makes `old` into `new`: labels, annotations and status; the spec is never in it. Maps
/// carry what changed, with null for what goes; conditions merge by type, so that those of others survive; addresses are
/// replaced as a whole (their merge key is not unique). `None`: there is nothing to send.
#[must_use]
pub fn patch(old: &Node, new: &Node) -> Option<Value> {
    let (old, new) = (serde_json::to_value(old).ok()?, serde_json::to_value(new).ok()?);
    let mut patch = Map::new();
    let mut metadata = Map::new();
    for key in ["annotations", "labels"] {
        if let Some(p) = difference(&old["metadata"][key], &new["metadata"][key]) {
            metadata.insert(key.to_owned(), p);
        }
    }
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    let status = status(&old["status"], &new["status"]);
    if !status.is_empty() {
        patch.insert("status".to_owned(), Value::Object(status));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

fn status(old: &Value, new: &Value) -> Map<String, Value> {
    let none = Map::new();
    let (old, new) = (old.as_object().unwrap_or(&none), new.as_object().unwrap_or(&none));
    let mut patch = Map::new();
    for key in old.keys().chain(new.keys().filter(|k| !old.contains_key(*k))) {
        let (a, b) = (old.get(key).unwrap_or(&Value::Null), new.get(key).unwrap_or(&Value::Null));
        match key.as_str() {
            "conditions" => conditions(a, b, &mut patch),
            "addresses" if a != b => {
                let mut all = b.as_array().cloned().unwrap_or_default();
                all.push(json!({ "$patch": "replace" }));
                patch.insert(key.clone(), Value::Array(all));
            }
            _ => {
                if let Some(p) = difference(a, b) {
                    patch.insert(key.clone(), p);
                }
            }
        }
    }
    patch
}

/// Objects by field, everything else as a whole.
fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(a), Value::Object(b)) = (old, new) else { return Some(new.clone()) };
    let gone = a.keys().filter(|k| !b.contains_key(*k)).map(|k| (k.clone(), Value::Null));
    let kept = b.iter().filter_map(|(k, v)| Some((k.clone(), difference(a.get(k).unwrap_or(&Value::Null), v)?)));
    Some(Value::Object(gone.chain(kept).collect()))
}

fn conditions(old: &Value, new: &Value, patch: &mut Map<String, Value>) {
    let none = Vec::new();
    let (a, b) = (old.as_array().unwrap_or(&none), new.as_array().unwrap_or(&none));
    let find = |all: &'_ [Value], kind: &Value| all.iter().find(|c| c["type"] == *kind).cloned();
    let mut changes = Vec::new();
    for condition in b {
        let kind = &condition["type"];
        let old = find(a, kind).unwrap_or_else(|| json!({}));
        if let Some(Value::Object(mut fields)) = difference(&old, condition) {
            fields.insert("type".to_owned(), kind.clone());
            changes.push(Value::Object(fields));
        }
    }
    for kind in a.iter().map(|c| &c["type"]).filter(|k| find(b, k).is_none()) {
        changes.push(json!({ "$patch": "delete", "type": kind }));
    }
    if !changes.is_empty() {
        let order = b.iter().map(|c| json!({ "type": c["type"] })).collect();
        patch.insert("$setElementOrder/conditions".to_owned(), Value::Array(order));
        patch.insert("conditions".to_owned(), Value::Array(changes));
    }
}
