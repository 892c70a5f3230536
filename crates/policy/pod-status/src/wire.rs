//! The strategic merge patch that turns the status in the API into the one that should be there (pod-lifecycle 9.8).

use model::core::PodStatus;
use model::strategic_merge;
use serde_json::{Map, Value};

#[cfg(test)]
mod tests;

/// Lists of a pod status that the API merges by a key; every other list is replaced whole.
const MERGED: [(&str, &str); 4] =
    [("conditions", "type"), ("podIPs", "ip"), ("hostIPs", "ip"), ("resourceClaimStatuses", "name")];

/// States of a container, and resources that are in force: empty ones say something too.
const TELLING: [&str; 4] = ["waiting", "running", "terminated", "resources"];
/// Required texts: sent even when they are empty.
const REQUIRED: [&str; 3] = ["name", "image", "imageID"];

/// The patch of the `status` field, `None` when both say the same. An order of list elements alone is no difference.
///
/// What only the API's copy has is taken away with `null` or `$patch: delete`; what neither has is not touched, so that
/// fields and conditions which this node does not know survive.
#[must_use]
pub fn status_patch(api: &PodStatus, wanted: &PodStatus) -> Option<Value> {
    let (old, new) = (fields(api), fields(wanted));
    let mut patch = strategic_merge::fields(&old, &new);
    let list = |of: &Map<String, Value>, field: &str| of.get(field).and_then(Value::as_array).cloned();
    for (field, key) in MERGED {
        if let Some(wanted) = list(&new, field) {
            patch.remove(field);
            let is = list(&old, field).unwrap_or_default();
            strategic_merge::insert_elements(&mut patch, field, key, &is, &wanted);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Fields of a status in one form: the API answers with empty values where this node leaves a field out.
fn fields(status: &PodStatus) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(mut map)) => {
            prune(&mut map);
            map
        }
        // A typed status always is an object.
        _ => Map::new(),
    }
}

fn prune(map: &mut Map<String, Value>) {
    map.retain(|key, value| {
        match value {
            Value::Object(inner) => prune(inner),
            Value::Array(list) => list.iter_mut().filter_map(Value::as_object_mut).for_each(prune),
            _ => {}
        }
        match value {
            Value::Null => false,
            Value::Object(inner) => !inner.is_empty() || TELLING.contains(&key.as_str()),
            Value::Array(list) => !list.is_empty(),
            Value::String(text) => !text.is_empty() || REQUIRED.contains(&key.as_str()),
            _ => true,
        }
    });
}
