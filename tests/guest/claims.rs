//! Claims on disks of the node: a local volume whose path is a device.

use serde_json::{Value, json};

use crate::node::Node;
use crate::served::create_object;

/// A claim that is bound to a volume on a device; both have this name.
pub(crate) fn create_claim(node: &Node, name: &str, device: &str) {
    let (modes, size) = (json!(["ReadWriteOnce"]), json!({"storage": "64Mi"}));
    let on_this_node = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": ["guest"]});
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "uid": format!("volume-{name}")},
        "spec": {
            "capacity": size, "accessModes": modes, "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "",
            "volumeMode": "Filesystem", "local": {"path": device, "fsType": "ext4"},
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": format!("claim-{name}")},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_this_node]}]}},
        },
        "status": {"phase": "Bound"},
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": format!("claim-{name}")},
        "spec": {
            "accessModes": modes, "resources": {"requests": size}, "volumeName": name, "storageClassName": "",
            "volumeMode": "Filesystem",
        },
        "status": {"phase": "Bound", "accessModes": modes, "capacity": size},
    });
    create_object(node, &format!("/api/v1/persistentvolumes/{name}"), &volume);
    create_object(node, &format!("/api/v1/namespaces/default/persistentvolumeclaims/{name}"), &claim);
}

/// Container and fields of the spec of a pod that has a claim at `/disk` and runs a script.
pub(crate) fn with_claim(claim: &str, script: &str) -> (Value, Value) {
    let mounts = json!([{"name": "disk", "mountPath": "/disk"}]);
    let container = json!({"command": ["sh", "-c", script], "volumeMounts": mounts});
    let volumes = json!([{"name": "disk", "persistentVolumeClaim": {"claimName": claim}}]);
    (container, json!({"volumes": volumes, "terminationGracePeriodSeconds": 1}))
}

/// Where the file systems of a device are mounted.
pub(crate) fn mounts(node: &Node, device: &str) -> Vec<String> {
    let text = node.sh(&format!("awk '$1 == \"{device}\" {{ print $2 }}' /proc/self/mounts"));
    text.lines().map(str::to_owned).collect()
}
