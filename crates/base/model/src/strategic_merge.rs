//! Differences as strategic merge patches say them: objects by field, lists with a merge key by element.

use serde_json::{Map, Value, json};

/// The patch that makes `old` into `new`: objects by field (`null` for what goes), everything else as a whole. `None`: both
/// are the same.
#[must_use]
pub fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => Some(Value::Object(fields(old, new))),
        _ => Some(new.clone()),
    }
}

/// As [`difference`], of the fields of two objects; empty when both are the same.
#[must_use]
pub fn fields(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let gone = old.keys().filter(|k| !new.contains_key(*k)).map(|k| (k.clone(), Value::Null));
    let kept = new.iter().filter_map(|(k, v)| Some((k.clone(), difference(old.get(k).unwrap_or(&Value::Null), v)?)));
    gone.chain(kept).collect()
}

/// The patch of a list that the API merges by the field `key`: elements that came or changed (with their key), then
/// `$patch: delete` for those that went. Empty when only the order differs.
#[must_use]
pub fn elements(old: &[Value], new: &[Value], key: &str) -> Vec<Value> {
    let find = |list: &'_ [Value], wanted: Option<&Value>| list.iter().find(|v| v.get(key) == wanted).cloned();
    let mut patch = Vec::new();
    for element in new {
        let change = match find(old, element.get(key)) {
            Some(is) => difference(&is, element),
            None => Some(element.clone()),
        };
        let Some(mut change) = change else { continue };
        if let (Some(fields), Some(name)) = (change.as_object_mut(), element.get(key)) {
            fields.insert(key.to_owned(), name.clone());
        }
        patch.push(change);
    }
    for gone in old.iter().filter(|v| find(new, v.get(key)).is_none()) {
        patch.push(json!({ "$patch": "delete", key: gone.get(key) }));
    }
    patch
}

/// Puts the patch of a merged list under `field`, with the order of its keys; nothing when no element changed.
pub fn insert_elements(patch: &mut Map<String, Value>, field: &str, key: &str, old: &[Value], new: &[Value]) {
    let changes = elements(old, new, key);
    if changes.is_empty() {
        return;
    }
    patch.insert(format!("$setElementOrder/{field}"), order(new, key));
    patch.insert(field.to_owned(), Value::Array(changes));
}

/// The keys of a merged list, for `$setElementOrder/...`.
#[must_use]
pub fn order(list: &[Value], key: &str) -> Value {
    list.iter().map(|v| json!({ key: v.get(key) })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_go_by_field_and_all_else_as_a_whole() {
        let (old, new) =
            (json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1]}), json!({"b": {"c": 1, "d": 3}, "e": [1, 2]}));
        assert_eq!(difference(&old, &new), Some(json!({"a": null, "b": {"d": 3}, "e": [1, 2]})));
        assert_eq!(difference(&new, &new), None);
    }

    #[test]
    fn elements_go_by_their_key() {
        let old = [json!({"type": "A", "status": "True", "reason": "x"}), json!({"type": "B"})];
        let new = [json!({"type": "C"}), json!({"type": "A", "status": "False", "reason": "x"})];
        let expected =
            [json!({"type": "C"}), json!({"type": "A", "status": "False"}), json!({"type": "B", "$patch": "delete"})];
        assert_eq!(elements(&old, &new, "type"), expected);
        let turned = [old[1].clone(), old[0].clone()];
        assert_eq!(elements(&old, &turned, "type"), Vec::<Value>::new(), "an order alone is no change");
        let mut patch = Map::new();
        insert_elements(&mut patch, "conditions", "type", &old, &old);
        assert!(patch.is_empty());
        insert_elements(&mut patch, "conditions", "type", &old, &new);
        assert_eq!(patch["$setElementOrder/conditions"], json!([{"type": "C"}, {"type": "A"}]));
    }
}
