//! Good manifests, each damaged in one place: either a clear error that names the place, or accepted for a reason.

use super::*;

/// One way to damage a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Damage {
    WrongType,
    Negative,
    BadWord,
    Removed,
}

/// Paths (dotted, as `put` takes them) of all leaves, and of all objects in lists.
fn places(node: &Value, at: &str, into: &mut Vec<(String, Value)>) {
    let join = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
    match node {
        Value::Object(fields) => fields.iter().for_each(|(k, v)| places(v, &join(&k.replace('.', "~")), into)),
        Value::Array(list) => list.iter().enumerate().for_each(|(i, v)| places(v, &join(&i.to_string()), into)),
        leaf => into.push((at.to_owned(), leaf.clone())),
    }
}

fn damaged(leaf: &Value, damage: Damage) -> Option<Value> {
    match (damage, leaf) {
        (Damage::WrongType, Value::String(_)) => Some(json!({"not": "text"})),
        (Damage::WrongType, _) => Some(json!([["not", "this"]])),
        (Damage::Negative, Value::Number(_)) => Some(json!(-7)),
        (Damage::BadWord, Value::String(_)) => Some(json!("no such/word!")),
        (Damage::Removed, _) => Some(Value::Null),
        _ => None,
    }
}

/// Why a damaged manifest may run all the same.
fn reason_to_accept(path: &str, damage: Damage) -> Option<&'static str> {
    let field = path.rsplit('.').find(|part| part.parse::<usize>().is_err()).unwrap_or_default();
    let free_text = ["value", "command", "example~com/note", "mountPath", "image", "subPath", "drop"];
    match damage {
        Damage::BadWord if free_text.contains(&field) => Some("any text is allowed here"),
        Damage::BadWord if path.contains(".env.") && field == "name" => Some("any printable ASCII names a variable"),
        Damage::BadWord if path.contains("hostPath.path") => Some("any path without '..' is allowed here"),
        Damage::BadWord if path.ends_with("items.0.path") || path.ends_with("items.1.path") => {
            Some("any relative path is allowed here")
        }
        Damage::BadWord if path.ends_with("containerName") => Some("the API does not look the container up"),
        Damage::BadWord if path.ends_with("options.0.name") => Some("any option of the resolver is allowed"),
        Damage::Negative if path.contains("exitCodes.values") => Some("any exit code is allowed"),
        Damage::Removed => Some("the field is optional or has a default"),
        _ => None,
    }
}

/// `spec.containers.0.name` as errors write it.
fn as_error_path(path: &str) -> String {
    let mut text = String::new();
    for part in path.split('.') {
        if part.parse::<usize>().is_ok() {
            text.push_str(&format!("[{part}]"));
        } else if part.contains(['~', '/']) {
            text.push_str(&format!("[{}]", part.replace('~', ".")));
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(part);
        }
    }
    text
}

/// Whether a fault at `fault` is about the field at `place`: the field itself, a part of it, what holds it, or (for names
/// that others refer to) a reference to it.
fn is_about(fault: &str, place: &str) -> bool {
    fault.starts_with(place)
        || place.starts_with(fault)
        || fault.replace(['[', ']'], ".").starts_with(&place.replace(['[', ']'], "."))
}

#[test]
fn every_mutation_gives_a_clear_error_or_is_accepted_for_a_reason() {
    let base = rich();
    let mut all = Vec::new();
    places(&base, "", &mut all);
    let (mut refused, mut accepted) = (0, 0);
    for (place, leaf) in &all {
        for damage in [Damage::WrongType, Damage::Negative, Damage::BadWord, Damage::Removed] {
            let Some(value) = damaged(leaf, damage) else { continue };
            let mut pod = base.clone();
            put(&mut pod, place, value);
            let what = format!("{place} {damage:?}");
            match read_json(&pod) {
                Ok(_) => {
                    assert!(reason_to_accept(place, damage).is_some(), "{what}: accepted without a reason");
                    accepted += 1;
                }
                Err(error) => {
                    let path = as_error_path(place);
                    let names_it = error.fields().iter().any(|f| is_about(&f.path, &path))
                        // Removing or renaming what others refer to is reported where it is referred to.
                        || (place.contains("volumes.") && place.ends_with("name"))
                        // What depends on the removed field says so.
                        || (damage == Damage::Removed && error.to_string().contains(place.rsplit('.').next().unwrap()))
                        // The pod's name is reported with the suffix of the node.
                        || place == "metadata.name";
                    assert!(names_it, "{what}: {error}");
                    assert!(error.fields().iter().all(|f| !f.path.is_empty()), "{what}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused >= 100, "only {refused} mutations refused");
    assert!(accepted >= 30, "only {accepted} mutations accepted");
}

/// Text that is cut off anywhere is refused or is a shorter good manifest; it never panics.
#[test]
fn a_manifest_cut_off_anywhere_has_an_answer() {
    let text = serde_saphyr::to_string(&rich()).unwrap();
    let mut refused = 0;
    for at in (0..text.len()).step_by(41) {
        let Some(part) = text.get(..at) else { continue };
        match read(part) {
            Ok(_) => {}
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(refused > 10, "{refused}");
}
