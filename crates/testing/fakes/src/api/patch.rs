//! Strategic merge patch and JSON merge patch, as API servers apply them.

use serde_json::{Map, Value};

/// Key that identifies an element of a merged list; `None`: the list is replaced as a whole.
///
/// `containerStatuses`, `taints`, `tolerations`, `images`, `volumesAttached` and `volumesInUse` have none in the API's types.
fn merge_key(field: &str, list: &[Value]) -> Option<&'static str> {
    Some(match field {
        "conditions" | "addresses" => "type",
        "podIPs" | "hostIPs" | "hostAliases" => "ip",
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "env"
        | "imagePullSecrets"
        | "secrets"
        | "resourceClaims"
        | "resourceClaimStatuses"
        | "schedulingGates" => "name",
        "volumeMounts" => "mountPath",
        "volumeDevices" => "devicePath",
        "topologySpreadConstraints" => "topologyKey",
        "ownerReferences" => "uid",
        "ports" if list.iter().any(|p| p.get("containerPort").is_some()) => "containerPort",
        "ports" => "port",
        _ => return None,
    })
}

/// Lists of plain values that are united instead of replaced.
fn united(field: &str) -> bool {
    matches!(field, "finalizers" | "podCIDRs")
}

/// Applies a strategic merge patch.
pub(super) fn strategic(object: &mut Value, patch: &Value) {
    match (object.as_object_mut(), patch.as_object()) {
        (Some(object), Some(patch)) => merge_map(object, patch),
        _ => *object = patch.clone(),
    }
}

/// Applies a JSON merge patch (RFC 7396).
pub(super) fn merge(object: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Some(object) = object.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            object.remove(key);
        } else {
            merge(object.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

fn directive(value: &Value) -> Option<&str> {
    value.get("$patch").and_then(Value::as_str)
}

fn merge_map(object: &mut Map<String, Value>, patch: &Map<String, Value>) {
    if let Some(word) = patch.get("$patch").and_then(Value::as_str)
        && word != "merge"
    {
        object.clear();
        if word == "delete" {
            return;
        }
    }
    if let Some(keep) = patch.get("$retainKeys").and_then(Value::as_array) {
        object.retain(|key, _| keep.iter().any(|k| k.as_str() == Some(key)));
    }
    for (key, value) in patch {
        if let Some(field) = key.strip_prefix("$deleteFromPrimitiveList/") {
            if let (Some(list), Some(gone)) = (object.get_mut(field).and_then(Value::as_array_mut), value.as_array()) {
                list.retain(|v| !gone.contains(v));
            }
        } else if !key.starts_with('$') {
            merge_field(object, key, value);
        }
    }
    for (key, order) in patch {
        if let (Some(field), Some(order)) = (key.strip_prefix("$setElementOrder/"), order.as_array())
            && let Some(list) = object.get_mut(field).and_then(Value::as_array_mut)
        {
            arrange(list, order, field);
        }
    }
}

fn merge_field(object: &mut Map<String, Value>, key: &str, value: &Value) {
    match value {
        Value::Null => {
            object.remove(key);
        }
        Value::Object(patch) => {
            if !object.get(key).is_some_and(Value::is_object) {
                object.insert(key.to_owned(), Value::Object(Map::new()));
            }
            if let Some(inner) = object.get_mut(key).and_then(Value::as_object_mut) {
                merge_map(inner, patch);
            }
            if directive(value) == Some("delete") {
                object.remove(key);
            }
        }
        Value::Array(patch) => {
            let mut list = match object.remove(key) {
                Some(Value::Array(list)) => list,
                _ => Vec::new(),
            };
            merge_list(&mut list, patch, key);
            object.insert(key.to_owned(), Value::Array(list));
        }
        plain => {
            object.insert(key.to_owned(), plain.clone());
        }
    }
}

fn merge_list(list: &mut Vec<Value>, patch: &[Value], field: &str) {
    if united(field) {
        list.extend(patch.iter().filter(|v| !list.contains(v)).cloned().collect::<Vec<_>>());
        return;
    }
    let Some(by) = merge_key(field, patch) else {
        *list = patch.to_vec();
        return;
    };
    if patch.iter().any(|v| directive(v) == Some("replace")) {
        *list = patch.iter().filter(|v| directive(v).is_none()).cloned().collect();
        return;
    }
    for element in patch {
        let at = list.iter().position(|v| v.get(by) == element.get(by));
        match (at, directive(element)) {
            (Some(at), Some("delete")) => drop(list.remove(at)),
            (None, Some("delete")) => {}
            (Some(at), _) => strategic(&mut list[at], element),
            (None, _) => {
                let mut fresh = Value::Object(Map::new());
                strategic(&mut fresh, element);
                list.push(fresh);
            }
        }
    }
}

/// Puts the named elements in the wanted order; the others keep their place among them where they can.
fn arrange(list: &mut Vec<Value>, order: &[Value], field: &str) {
    let by = merge_key(field, list);
    let wanted = |v: &Value| {
        order.iter().position(|o| match by {
            Some(by) => o.get(by) == v.get(by),
            None => o == v,
        })
    };
    let old = std::mem::take(list);
    let (mut named, others): (Vec<_>, Vec<_>) = old.into_iter().enumerate().partition(|(_, v)| wanted(v).is_some());
    named.sort_by_key(|(_, v)| wanted(v));
    let mut others = others.into_iter().peekable();
    for (at, value) in named {
        while let Some((_, other)) = others.next_if(|(index, _)| *index < at) {
            list.push(other);
        }
        list.push(value);
    }
    list.extend(others.map(|(_, v)| v));
}

#[cfg(test)]
mod tests;
