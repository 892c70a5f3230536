//! Pods and nodes for tests, from short JSON.

use std::collections::BTreeMap;

use model::core::{Container, Pod, Service};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Value, json};

use crate::NodeSettings;

/// Pod `web` of namespace `ns`, uid `u-1`, with this spec; `containers` may be left out.
pub(crate) fn pod(mut spec: Value) -> Pod {
    if spec.get("containers").is_none() {
        spec["containers"] = json!([{"name": "app", "image": "i"}]);
    }
    if spec.get("enableServiceLinks").is_none() {
        spec["enableServiceLinks"] = json!(true);
    }
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "ns", "uid": "u-1",
                     "labels": {"app": "x", "z": "q"}, "annotations": {"note": "hello"}},
        "spec": spec,
    }))
    .expect("a pod")
}

/// Container `app` with these fields.
pub(crate) fn container(mut fields: Value) -> Container {
    fields["name"] = json!("app");
    serde_json::from_value(fields).expect("a container")
}

/// A service with a cluster address.
pub(crate) fn service(namespace: &str, name: &str, ip: &str, ports: Value) -> Service {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": namespace}, "spec": {"clusterIP": ip, "ports": ports},
    }))
    .expect("a service")
}

/// A node with one address and 4 cores.
pub(crate) fn node() -> NodeSettings {
    let q = |name: &str, amount: &str| (name.to_owned(), Quantity(amount.to_owned()));
    NodeSettings {
        root_dir: "/var/lib/kubelet".to_owned(),
        pod_logs_dir: "/var/log/pods".to_owned(),
        cluster_domain: "cluster.local".to_owned(),
        seccomp_default: false,
        selinux: false,
        thermal_throttle_paths: Vec::new(),
        host_ips: vec!["10.0.0.1".parse().expect("ip"), "fd00::1".parse().expect("ip")],
        allocatable: BTreeMap::from([q("cpu", "4"), q("memory", "8Gi"), q("ephemeral-storage", "100Gi")]),
    }
}
