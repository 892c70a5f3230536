//! The strategic merge patch from one Node to another (interfaces 9.3).

use model::core::Node;
use model::strategic_merge::{self, difference};
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
    let mut patch = strategic_merge::fields(old.as_object().unwrap_or(&none), new.as_object().unwrap_or(&none));
    let list = |of: &Value, field: &str| of[field].as_array().cloned().unwrap_or_default();
    patch.remove("conditions");
    let (is, wanted) = (list(old, "conditions"), list(new, "conditions"));
    strategic_merge::insert_elements(&mut patch, "conditions", "type", &is, &wanted);
    if let Some(addresses) = patch.get_mut("addresses") {
        let mut all = list(new, "addresses");
        all.push(json!({ "$patch": "replace" }));
        *addresses = Value::Array(all);
    }
    patch
}
