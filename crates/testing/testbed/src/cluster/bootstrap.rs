//! Objects that an installer (kubeadm and its like) puts into a fresh cluster, as far as nodes need them.

use serde_json::{Map, Value, json};

/// Id and secret, as kubeconfigs carry them.
pub(super) const TOKEN: &str = "abcdef.0123456789abcdef";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// The configMap of each namespace that a controller makes.
pub(super) const ROOT_CERTIFICATE: &str = "kube-root-ca.crt";

/// The configMaps that the projected volumes of a pod need, with empty values.
pub(super) fn config_maps_of(pod: &Value) -> impl Iterator<Item = Value> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let sources = volumes.flat_map(|v| v["projected"]["sources"].as_array().into_iter().flatten());
    sources.map(|s| &s["configMap"]).filter(|map| map.is_object()).map(|map| {
        let items = map["items"].as_array().into_iter().flatten();
        let data: Map<String, Value> = items.filter_map(|i| Some((i["key"].as_str()?.to_owned(), json!("")))).collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": map["name"]}, "data": data})
    })
}

/// Paths and objects in the order of their creation.
pub(super) fn objects() -> Vec<(&'static str, Value)> {
    let approve = "system:certificates.k8s.io:certificatesigningrequests";
    vec![
        (BINDINGS, binding("bed:node-bootstrap", "system:node-bootstrapper", "system:bootstrappers")),
        (BINDINGS, binding("bed:node-approve", &format!("{approve}:nodeclient"), "system:bootstrappers")),
        (BINDINGS, binding("bed:node-renew", &format!("{approve}:selfnodeclient"), "system:nodes")),
        ("/api/v1/namespaces/kube-system/secrets", token()),
    ]
}

fn binding(name: &str, role: &str, group: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
    })
}

fn token() -> Value {
    let (id, secret) = TOKEN.split_once('.').unwrap_or_default();
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": format!("bootstrap-token-{id}"), "namespace": "kube-system"},
        "stringData": {
            "token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true",
            "usage-bootstrap-signing": "true",
        },
    })
}
