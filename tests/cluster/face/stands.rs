//! Where pods stand, asked from afar: through the API server's proxy, by who may use it.

use serde_json::{Value, json};
use testbed::ClusterNode;

use super::access::{account, ask};
use crate::node::{PODS, SOON, create, delete, lasting, make, pod, shell, start, wait_gone, wait_running};

fn raw(node: &ClusterNode, what: &str, name: &str) -> Result<Value, String> {
    let path = format!("/api/v1/nodes/bed/proxy/bosun/{what}/default/{name}");
    let text = node.cluster.kubectl(&["get", "--raw", &path]).map_err(|e| e.to_string())?;
    serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))
}

/// Waits for the cause; each word is somewhere in what is said then.
fn says(node: &ClusterNode, name: &str, cause: &str, words: &[&str]) {
    let said = testbed::wait_until(&format!("why of {name} to be {cause}"), SOON, || match raw(node, "why", name) {
        Ok(verdict) if verdict["cause"] == cause => Ok(verdict.to_string()),
        other => Err(format!("{other:?}")),
    })
    .unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()));
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn cluster_admins_ask_where_a_pod_stands_and_nobody_else_is_told() {
    let node = start();
    let mut kept = lasting("kept");
    kept["metadata"]["finalizers"] = json!(["example.com/billing"]);
    create(&node, &kept);
    let volumes = |source: Value| json!([{"name": "data", "configMap": source}]);
    let mounts = json!({"volumeMounts": [{"name": "data", "mountPath": "/data"}]});
    let of = |name: &str, volumes: Value| {
        pod(name, json!({"containers": [shell("main", "exec sleep 1000", mounts.clone())], "volumes": volumes}))
    };
    create(&node, &of("waits", volumes(json!({"name": "later"}))));
    let gate = json!({"readinessGates": [{"conditionType": "example.com/gate"}],
        "containers": [shell("main", "exec sleep 1000", json!({}))]});
    create(&node, &pod("gated", gate));
    wait_running(&node, "kept");
    says(&node, "kept", "Ready", &["default/kept"]);
    says(&node, "waits", "VolumeWaits", &["later"]);
    says(&node, "gated", "ReadinessGate", &["example.com/gate"]);
    delete(&node, "kept");
    says(&node, "kept", "TerminatingFinalizer", &["example.com/billing"]);

    // What it waited for comes.
    make(
        &node,
        "configmaps",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}, "data": {"a": "b"}}),
    );
    wait_running(&node, "waits");
    says(&node, "waits", "Ready", &[]);
    let life = raw(&node, "timeline", "waits").expect("a life");
    let labels: Vec<&str> = life["bars"].as_array().into_iter().flatten().filter_map(|b| b["label"].as_str()).collect();
    for step in ["scheduled", "admitted", "volumes", "sandbox", "create", "start", "running", "ready"] {
        assert!(labels.contains(&step), "{step}: {labels:?}");
    }

    let nobody = account(&node, "nobody");
    for what in ["why", "timeline"] {
        let (code, body) = ask(&node, &nobody, &format!("/bosun/{what}/default/waits"));
        assert_eq!(code, 403, "{what}: {body}");
    }
    let free = json!({"metadata": {"finalizers": null}});
    node.cluster.admin().patch(&format!("{PODS}/kept"), &free).expect("freed");
    wait_gone(&node, "kept");
}
