//! Calls and events without what differs from run to run.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::cases::Case;

/// Words that stand for what is new in each run.
pub(crate) struct Words {
    root: String,
}

impl Words {
    pub(crate) fn of(root: &Path) -> Self {
        Self { root: root.display().to_string() }
    }

    pub(crate) fn text(&self, text: &str) -> String {
        let text = text.replace(&self.root, "<root>");
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let taken = if is_uid(rest) {
                out.push_str("<uid>");
                UID
            } else {
                let first = rest.chars().next().map_or(0, char::len_utf8);
                out.push_str(&rest[..first]);
                first
            };
            rest = &rest[taken..];
        }
        out
    }
}

const UID: usize = 36;

/// Whether a text begins with a UID.
fn is_uid(text: &str) -> bool {
    let Some(word) = text.as_bytes().get(..UID) else { return false };
    word.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// Each call with its fields and its end. The same one again at once counts as one: how often depends on time.
pub(super) fn calls(calls: &[Value], words: &Words) -> Vec<Value> {
    let mut out: Vec<Value> = calls.iter().map(|c| call(c, words)).collect();
    out.dedup();
    out
}

fn call(call: &Value, words: &Words) -> Value {
    let mut request = call["request"].clone();
    clean(&mut request, words);
    json!({"call": call["call"], "code": call["code"], "request": request})
}

fn clean(value: &mut Value, words: &Words) {
    match value {
        Value::String(text) => *text = words.text(text),
        Value::Array(items) => items.iter_mut().for_each(|v| clean(v, words)),
        Value::Object(fields) => {
            for (key, field) in fields {
                if key == "csi.storage.k8s.io/serviceAccount.tokens" {
                    *field = tokens(field);
                } else {
                    clean(field, words);
                }
                // Made of the pod's UID.
                if key == "volume_id" && field.as_str().is_some_and(|id| id.starts_with("csi-")) {
                    *field = json!("csi-<sha256>");
                }
            }
        }
        _ => {}
    }
}

/// Audiences and fields of the tokens.
fn tokens(text: &Value) -> Value {
    let mut tokens: Value = serde_json::from_str(text.as_str().unwrap_or_default()).unwrap_or_default();
    for token in tokens.as_object_mut().into_iter().flat_map(|o| o.values_mut()) {
        for field in token.as_object_mut().into_iter().flat_map(|o| o.values_mut()) {
            *field = json!("<new>");
        }
    }
    tokens
}

/// Names and ends of calls.
pub(super) fn short(calls: &[Value]) -> Vec<String> {
    calls.iter().map(|c| format!("{} {} {}", c["request"]["volume_id"], c["call"], c["code"])).collect()
}

/// Ids of a case's volumes; one that a pod describes itself has an id made of its UID.
pub(super) fn handles(case: &Case) -> BTreeSet<String> {
    let claimed = case.claims.iter().filter_map(|c| c.source["volumeHandle"].as_str().map(str::to_owned));
    let inline = case.pods.iter().filter(|p| p["spec"]["volumes"][0]["csi"].is_object()).map(|_| "csi-".to_owned());
    claimed.chain(inline).collect()
}

/// Whether a call is about one of these volumes.
pub(super) fn is_of(call: &Value, handles: &BTreeSet<String>) -> bool {
    let id = call["request"]["volume_id"].as_str().unwrap_or_default();
    handles.iter().any(|h| if h == "csi-" { id.starts_with("csi-") } else { id == h })
}

/// Where the second differs from the first, one line each.
pub(super) fn differences(kubelet: &Value, bosun: &Value) -> Vec<String> {
    let mut out = Vec::new();
    walk("", kubelet, bosun, &mut out);
    out
}

fn walk(path: &str, a: &Value, b: &Value, out: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            for key in x.keys().chain(y.keys().filter(|k| !x.contains_key(*k))) {
                walk(&format!("{path}/{key}"), &a[key], &b[key], out);
            }
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            x.iter().zip(y).enumerate().for_each(|(n, (v, w))| walk(&format!("{path}/{n}"), v, w, out));
        }
        _ if a == b => {}
        _ => out.push(format!("{path}: a kubelet {a}, bosun {b}")),
    }
}
