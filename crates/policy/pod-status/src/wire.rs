//! The strategic merge patch that turns the status in the API into the one that should be there (9.8).

use model::core::PodStatus;
use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// Lists of a pod status that the API merges by a key; every other list is replaced whole.
const MERGED: [(&str, &str); 4] =
    [("conditions", "type"), ("podIPs", "ip"), ("hostIPs", "ip"), ("resourceClaimStatuses", "name")];

/// States of a container: empty ones say something too.
const STATES: [&str; 3] = ["waiting", "running", "terminated"];
/// Required texts: sent even when they are empty.
const REQUIRED: [&str; 3] = ["name", "image", "imageID"];

/// The patch of the `status` field, `None` when both say the same. An order of list elements alone is no difference.
///
/// What only the API's copy has is taken away with `null` or `$patch: delete`; what neither has is not touched, so that
/// fields and conditions which this node does not know survive.
#[must_use]
pub fn status_patch(api: &PodStatus, wanted: &PodStatus) -> Option<Value> {
    let (old, new) = (fields(api), fields(wanted));
    let mut patch = difference(&old, &new, true);
    // The keys of merged lists in the wanted order; only beside a true change.
    for (field, key) in MERGED {
        if patch.get(field).is_some_and(Value::is_array)
            && let Some(Value::Array(list)) = new.get(field)
        {
            let order: Vec<Value> = list.iter().map(|v| json!({ key: v.get(key) })).collect();
            patch.insert(format!("$setElementOrder/{field}"), Value::Array(order));
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
            Value::Object(inner) => !inner.is_empty() || STATES.contains(&key.as_str()),
            Value::Array(list) => !list.is_empty(),
            Value::String(text) => !text.is_empty() || REQUIRED.contains(&key.as_str()),
            _ => true,
        }
    });
}

fn difference(old: &Map<String, Value>, new: &Map<String, Value>, top: bool) -> Map<String, Value> {
    let mut patch = Map::new();
    for key in old.keys().filter(|k| !new.contains_key(*k)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, wanted) in new {
        let merged = MERGED.iter().find(|(field, _)| top && field == key);
        let change = match (old.get(key), wanted) {
            (Some(is), _) if is == wanted => None,
            (Some(Value::Object(is)), Value::Object(wanted)) => {
                let inner = difference(is, wanted, false);
                (!inner.is_empty()).then_some(Value::Object(inner))
            }
            (Some(Value::Array(is)), Value::Array(wanted)) if merged.is_some() => {
                merged.and_then(|(_, by)| elements(is, wanted, by))
            }
            _ => Some(wanted.clone()),
        };
        if let Some(change) = change {
            patch.insert(key.clone(), change);
        }
    }
    patch
}

/// Elements that changed, came or went.
fn elements(old: &[Value], new: &[Value], by: &str) -> Option<Value> {
    let find = |list: &[Value], key: Option<&Value>| list.iter().find(|v| v.get(by) == key).cloned();
    let mut patch = Vec::new();
    for element in new {
        let change = match (find(old, element.get(by)), element) {
            (Some(Value::Object(is)), Value::Object(wanted)) => {
                let mut inner = difference(&is, wanted, false);
                if inner.is_empty() {
                    continue;
                }
                inner.extend(wanted.get(by).map(|v| (by.to_owned(), v.clone())));
                Value::Object(inner)
            }
            _ => element.clone(),
        };
        patch.push(change);
    }
    for gone in old.iter().filter(|v| find(new, v.get(by)).is_none()) {
        patch.push(json!({ "$patch": "delete", by: gone.get(by) }));
    }
    (!patch.is_empty()).then_some(Value::Array(patch))
}
