//! Tables of the rules.

mod claims;
mod drivers;
mod growth;
mod luns;
mod migrated;
mod selinux;
mod sources;
mod userns;

use model::core::{PersistentVolume, Pod};
use serde_json::{Value, json};

fn pod(spec: Value) -> Pod {
    let meta = json!({ "name": "web", "namespace": "shop", "uid": "u1" });
    serde_json::from_value(json!({ "metadata": meta, "spec": spec })).unwrap()
}

fn persistent(spec: Value, annotations: Value) -> PersistentVolume {
    serde_json::from_value(json!({ "metadata": { "name": "pv1", "annotations": annotations }, "spec": spec })).unwrap()
}
