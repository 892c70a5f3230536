//! Which fields an API server of some version can hold: what it does not know, no watch can see.

use serde_json::Value;

/// Fields of a pod's status (at any depth) with the minor version that brought them.
const POD_STATUS: &[(&str, u32)] = &[
    ("hostIPs", 28),
    ("observedGeneration", 33),
    ("resources", 27),
    ("allocatedResources", 27),
    ("volumeMounts", 30),
    ("user", 31),
    ("allocatedResourcesStatus", 31),
    ("stopSignal", 33),
];

/// The same of a Node's status.
const NODE_STATUS: &[(&str, u32)] =
    &[("runtimeHandlers", 30), ("features", 31), ("swap", 34), ("declaredFeatures", 35)];

/// Annotations of pods that a server adds by itself up to this minor version, by their beginning.
const OWN_ANNOTATIONS: &[(&str, u32)] =
    &[("seccomp.security.alpha.kubernetes.io/", 26), ("container.seccomp.security.alpha.kubernetes.io/", 26)];

/// Cases whose mirror pod needs a field that came with this minor version: an older server refuses it.
pub const NO_MIRROR: &[(&str, u32)] = &[("static-sidecar", 28)];

/// Leaves out annotations that a server of this version adds.
pub fn strip_annotations(annotations: &mut Value, minor: u32) {
    if let Some(map) = annotations.as_object_mut() {
        map.retain(|key, _| !OWN_ANNOTATIONS.iter().any(|(begin, until)| minor <= *until && key.starts_with(begin)));
    }
}

/// Cases whose manifest needs a field that came with this minor version.
pub const NEEDS: &[(&str, u32, &str)] = &[("sidecar", 28, "restartPolicy of init containers")];

fn strip(value: &mut Value, unknown: &[&str]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|v| strip(v, unknown)),
        Value::Object(map) => {
            map.retain(|key, _| !unknown.contains(&key.as_str()));
            map.values_mut().for_each(|v| strip(v, unknown));
        }
        _ => {}
    }
}

fn unknown(table: &[(&'static str, u32)], minor: u32) -> Vec<&'static str> {
    table.iter().filter(|(_, since)| minor < *since).map(|(field, _)| *field).collect()
}

/// Leaves out of a pod's status what the server cannot hold.
pub fn strip_pod_status(status: &mut Value, minor: u32) {
    strip(status, &unknown(POD_STATUS, minor));
}

/// Leaves out of a Node's status what the server cannot hold.
pub fn strip_node_status(status: &mut Value, minor: u32) {
    strip(status, &unknown(NODE_STATUS, minor));
}

/// What a server of this version cannot hold, for people.
pub fn left_out(minor: u32) -> Vec<&'static str> {
    unknown(POD_STATUS, minor).into_iter().chain(unknown(NODE_STATUS, minor)).collect()
}
