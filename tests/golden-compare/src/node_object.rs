//! The Node object of the recording beside ours.

use serde_json::{Value, json};

use crate::normal::compare;
use crate::server::strip_node_status;

/// Facts of one machine or one configuration; that they are there is what counts.
const OF_THE_MACHINE: &[&str] = &[
    "/status/capacity/ephemeral-storage",
    "/status/allocatable/ephemeral-storage",
    "/status/daemonEndpoints/kubeletEndpoint/Port",
    "/status/nodeInfo/bootID",
    "/status/nodeInfo/machineID",
    "/status/nodeInfo/systemUUID",
    "/status/nodeInfo/kernelVersion",
    "/status/nodeInfo/osImage",
    "/status/nodeInfo/containerRuntimeVersion",
    "/status/nodeInfo/swap/capacity",
];

fn form(node: &Value, minor: u32) -> Value {
    let mut node = node.clone();
    if let Some(metadata) = node["metadata"].as_object_mut() {
        metadata.retain(|key, _| ["annotations", "labels", "name"].contains(&key.as_str()));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            // Set by the control plane.
            annotations.remove("node.alpha.kubernetes.io/ttl");
        }
    }
    // Cordoned by hand and by controllers.
    if let Some(spec) = node["spec"].as_object_mut() {
        spec.retain(|key, _| !["unschedulable", "taints", "podCIDR", "podCIDRs"].contains(&key.as_str()));
    }
    strip_node_status(&mut node["status"], minor);
    for pointer in OF_THE_MACHINE {
        if let Some(value) = node.pointer_mut(pointer).filter(|v| !v.is_null()) {
            *value = json!("<set>");
        }
    }
    let status = &mut node["status"];
    relate_memory(status);
    if status["images"].as_array().is_some_and(|i| !i.is_empty()) {
        let good =
            status["images"].as_array().into_iter().flatten().all(|i| i["names"].is_array() && i["sizeBytes"].is_u64());
        status["images"] = json!(if good { "<named and sized>" } else { "<incomplete>" });
    }
    for address in status["addresses"].as_array_mut().into_iter().flatten().filter(|a| a["type"] == "InternalIP") {
        address["address"] = json!("<node ip>");
    }
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        for time in ["lastHeartbeatTime", "lastTransitionTime"] {
            condition[time] = json!(condition[time].is_string());
        }
    }
    node
}

/// How much is kept back of the memory counts, not how much the machine has.
fn relate_memory(status: &mut Value) {
    let kib = |value: &Value| value.as_str()?.strip_suffix("Ki")?.parse::<i64>().ok();
    let [capacity, allocatable] = ["capacity", "allocatable"].map(|list| kib(&status[list]["memory"]));
    if let (Some(capacity), Some(allocatable)) = (capacity, allocatable) {
        status["capacity"]["memory"] = json!("<set>");
        status["allocatable"]["memory"] = json!(format!("{}Ki less", capacity - allocatable));
    }
}

/// Everything that differs, one line each.
pub fn differences(want: &Value, got: &Value, minor: u32) -> Vec<String> {
    let mut out = Vec::new();
    compare("node", &form(want, minor), &form(got, minor), &mut out);
    out
}
