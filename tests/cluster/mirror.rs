//! Static pods and the objects that stand for them.

use serde_json::json;

use crate::node::{PODS, delete, identity, start, wait, wait_gone, wait_running};

fn manifest(script: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "fixed"},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [
            {"name": "main", "image": testbed::BUSYBOX_IMAGES[0], "command": ["sh", "-c", script]}]},
    })
    .to_string()
}

#[test]
fn a_static_pod_is_shown_by_a_mirror_that_comes_back_and_goes_with_the_file() {
    let mut node = start();
    node.bosun.put("fixed.yaml", &manifest("exec sleep 1000")).expect("written");
    let mirror = wait_running(&node, "fixed-bed");
    let notes = &mirror["metadata"]["annotations"];
    let hash = notes["kubernetes.io/config.hash"].as_str().expect("a hash");
    assert_eq!(notes["kubernetes.io/config.mirror"], hash, "{notes}");
    assert_eq!(notes["kubernetes.io/config.source"], "file", "{notes}");
    assert!(notes["kubernetes.io/config.seen"].is_string(), "{notes}");
    let owner = &mirror["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["controller"]), (&json!("Node"), &json!(true)), "{owner}");
    assert_eq!(owner["uid"], node.node().expect("a node")["metadata"]["uid"]);

    delete(&node, "fixed-bed");
    let uid = mirror["metadata"]["uid"].clone();
    let again = wait(&node, "fixed-bed", "to be mirrored again", |p| {
        let new = p.is_object() && p["metadata"]["uid"] != uid;
        (new && p["status"]["phase"] == "Running").then(|| p.clone())
    });
    assert_eq!(identity(&again), identity(&mirror), "the pod itself was not touched");

    node.bosun.kill();
    node.start_again().expect("starts again");
    let kept = wait_running(&node, "fixed-bed");
    assert_eq!(kept["metadata"]["uid"], again["metadata"]["uid"], "the mirror is still right");
    assert_eq!(identity(&kept), identity(&mirror));

    node.bosun.put("fixed.yaml", &manifest("exec sleep 2000")).expect("written");
    let changed = wait(&node, "fixed-bed", "to show the new manifest", |p| {
        let new = p["spec"]["containers"][0]["command"][2] == "exec sleep 2000";
        (new && p["status"]["phase"] == "Running").then(|| p.clone())
    });
    assert_ne!(identity(&changed), identity(&mirror));
    node.bosun.remove("fixed.yaml").expect("removed");
    wait_gone(&node, "fixed-bed");
    assert!(node.cluster.admin().list(PODS).expect("a list").is_empty());
}
