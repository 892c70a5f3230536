//! The Node object, its lease and its life.

use serde_json::{Value, json};
use testbed::{BosunOptions, NodeOptions};

use crate::node::{SOON, condition, start, start_with};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/bed";

fn address(node: &Value, kind: &str) -> Value {
    let all = node["status"]["addresses"].as_array().into_iter().flatten();
    all.into_iter().find(|a| a["type"] == kind).map_or(Value::Null, |a| a["address"].clone())
}

#[test]
fn a_node_registers_with_all_that_a_kubelet_tells() {
    let node = start();
    let object = node.node().expect("a node");
    let labels = &object["metadata"]["labels"];
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    for (key, value) in [
        ("kubernetes.io/hostname", "bed"),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", arch),
        ("beta.kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", arch),
    ] {
        assert_eq!(labels[key], value, "{labels}");
    }
    let managed = &object["metadata"]["annotations"]["volumes.kubernetes.io/controller-managed-attach-detach"];
    assert_eq!(managed, "true");
    assert_eq!(address(&object, "InternalIP"), node.bed.node_ip());
    assert_eq!(address(&object, "Hostname"), "bed");
    for (kind, status, reason, message) in [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ] {
        let seen = condition(&object, kind);
        assert_eq!(seen["status"], status, "{seen}");
        assert_eq!(seen["reason"], reason, "{seen}");
        assert_eq!(seen["message"], message, "{seen}");
    }
    for list in ["capacity", "allocatable"] {
        let values = &object["status"][list];
        for resource in ["cpu", "memory", "ephemeral-storage", "pods"] {
            assert!(values[resource].is_string(), "{list} without {resource}: {values}");
        }
        assert_eq!(values["pods"], "250", "{values}");
    }
    let info = &object["status"]["nodeInfo"];
    let filled = ["machineID", "bootID", "kernelVersion", "osImage", "kubeletVersion", "systemUUID"];
    for field in filled {
        assert!(info[field].as_str().is_some_and(|s| !s.is_empty()), "{field} is empty: {info}");
    }
    let runtime = info["containerRuntimeVersion"].as_str().unwrap_or_default();
    assert!(runtime.starts_with(node.bed.scheme()), "{info}");
    assert_eq!((&info["operatingSystem"], &info["architecture"]), (&json!("linux"), &json!(arch)), "{info}");
    assert_eq!(object["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"], 10250);
    let names = object["status"]["images"].to_string();
    assert!(names.contains(testbed::BUSYBOX_IMAGES[0]), "{names}");
}

#[test]
fn the_lease_is_the_nodes_own_and_renewed() {
    let node = start();
    let lease = || node.cluster.admin().get(LEASE).map_err(|e| e.to_string());
    let first = testbed::wait_until("a lease", SOON, lease).expect("a lease");
    assert_eq!(first["spec"]["holderIdentity"], "bed");
    assert_eq!(first["spec"]["leaseDurationSeconds"], 40);
    let owner = &first["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["name"]), (&json!("Node"), &json!("bed")), "{owner}");
    assert_eq!(owner["uid"], node.node().expect("a node")["metadata"]["uid"]);
    testbed::wait_until("its renewal", SOON, || {
        let now = lease()?;
        if now["spec"]["renewTime"] == first["spec"]["renewTime"] { Err(now.to_string()) } else { Ok(()) }
    })
    .expect("renewed");
}

#[test]
fn labels_and_taints_are_given_once_and_what_others_changed_stays() {
    let flags = vec!["--node-labels=tier=web".to_owned(), "--register-with-taints=own=yes:NoSchedule".to_owned()];
    let mut node =
        start_with(NodeOptions { bosun: BosunOptions { flags, ..BosunOptions::default() }, ..NodeOptions::default() });
    let object = node.node().expect("a node");
    assert_eq!(object["metadata"]["labels"]["tier"], "web");
    assert!(object["spec"]["taints"].to_string().contains("\"own\""), "{}", object["spec"]);
    node.bosun.kill();
    let change = json!({"metadata": {"labels": {"tier": "db", "more": "yes", "kubernetes.io/os": "plan9"}},
        "spec": {"unschedulable": true, "taints": []}});
    node.cluster.admin().patch("/api/v1/nodes/bed", &change).expect("changed");
    node.start_again().expect("starts again");
    let object = node
        .wait_node("to have its own labels again", SOON, |n| {
            (n["metadata"]["labels"]["kubernetes.io/os"] == "linux").then(|| n.clone())
        })
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(object["metadata"]["labels"]["tier"], "db", "labels of the command line are for new nodes");
    assert_eq!(object["metadata"]["labels"]["more"], "yes");
    assert_eq!(object["spec"]["unschedulable"], true);
    assert!(!object["spec"]["taints"].to_string().contains("\"own\""), "{}", object["spec"]);
}

#[test]
fn an_idle_node_asks_for_little() {
    let node = start();
    node.wait_node("to have a lease", SOON, |_| node.cluster.admin().get(LEASE).ok()).unwrap_or_else(|e| panic!("{e}"));
    // Long enough for the lists and watches of a start to be over, and for some leases.
    let count = || node.cluster.requests_by(&node.user()).expect("audit");
    let renewals = |from: usize| count()[from..].iter().filter(|r| r.resource == "leases").count();
    let settled = testbed::wait_until("two renewals", SOON, || match renewals(0) {
        n if n >= 3 => Ok(count().len()),
        n => Err(n.to_string()),
    })
    .expect("renews");
    testbed::wait_until("three more renewals", SOON, || match renewals(settled) {
        n if n >= 3 => Ok(()),
        n => Err(n.to_string()),
    })
    .expect("renews");
    let other: Vec<_> =
        count()[settled..].iter().filter(|r| r.resource != "leases").map(|r| format!("{} {}", r.verb, r.uri)).collect();
    assert!(other.len() <= 3, "30 s of an idle node: {other:#?}");
}
