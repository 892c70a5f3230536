//! Pods of the tests.

use model::core::{Pod, Volume};
use serde_json::{Value, json};

pub(crate) fn with_spec(spec: Value) -> Pod {
    let mut spec = spec;
    spec.as_object_mut().unwrap().entry("containers").or_insert(json!([]));
    let metadata = json!({
        "name": "p", "namespace": "ns", "uid": "u", "labels": {"app": "x", "z": "q"}, "annotations": {"note": "a\nb"},
    });
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

pub(crate) fn volume(source: Value) -> Volume {
    let mut v = json!({"name": "v"});
    v.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
    serde_json::from_value(v).unwrap()
}
