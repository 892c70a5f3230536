//! The API server gone, frozen, emptied and back; the daemon gone and back.

use serde_json::json;
use testbed::{ClusterNode, wait_until};

use crate::node::{
    LASTS, PODS, SOON, condition, crash, create, delete, identity, lasting, pod, running, shell, start, wait,
    wait_gone, wait_running, wait_started_again,
};

fn wait_for_runtime(node: &ClusterNode, what: &str, wanted: &[&str]) {
    wait_until(what, SOON, || {
        let now = running(node);
        if now == wanted { Ok(()) } else { Err(format!("{now:?}\n{}", node.bosun.log())) }
    })
    .unwrap_or_else(|e| panic!("{e}"));
}

fn wait_restarted(node: &ClusterNode, name: &str, from: &[(String, u64)]) {
    wait(node, name, "to be told as restarted", |p| {
        let now = identity(p);
        (!now.is_empty() && now[0].1 == from[0].1 + 1 && now[0].0 != from[0].0).then_some(())
    });
}

#[test]
fn pods_go_on_and_are_restarted_while_nobody_answers() {
    let mut node = start();
    create(&node, &lasting("a"));
    create(&node, &lasting("b"));
    let (a, b) = (wait_running(&node, "a"), wait_running(&node, "b"));
    node.cluster.stop_apiserver();
    crash(&node, &a);
    wait_started_again(&node, "a");
    assert_eq!(running(&node), ["a", "b"]);
    node.cluster.start_apiserver(&mut node.bed).expect("comes back");
    wait_restarted(&node, "a", &identity(&a));
    assert_eq!(identity(&wait_running(&node, "b")), identity(&b), "nobody touched it");
    node.wait_ready(SOON).unwrap_or_else(|e| panic!("{e}"));
    create(&node, &lasting("c"));
    wait_running(&node, "c");
    for name in ["a", "b", "c"] {
        delete(&node, name);
    }
    for name in ["a", "b", "c"] {
        wait_gone(&node, name);
    }
}

#[test]
fn a_frozen_api_server_holds_up_no_pod() {
    let node = start();
    create(&node, &lasting("a"));
    let a = wait_running(&node, "a");
    node.cluster.pause_apiserver();
    crash(&node, &a);
    wait_started_again(&node, "a");
    assert_eq!(running(&node), ["a"]);
    node.bosun.get("pods").expect("the daemon itself answers");
    node.cluster.resume_apiserver();
    wait_restarted(&node, "a", &identity(&a));
    create(&node, &lasting("b"));
    wait_running(&node, "b");
}

#[test]
fn a_node_that_starts_without_an_api_server_runs_the_pods_it_knows() {
    let mut node = start();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": "v"}});
    crate::node::make(&node, "configmaps", &map);
    let env = json!({"env": [{"name": "K", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]});
    create(&node, &lasting("a"));
    create(&node, &pod("b", json!({"containers": [shell("main", LASTS, env)]})));
    let (a, b) = (wait_running(&node, "a"), wait_running(&node, "b"));
    // What is read for all pods is written down some seconds after it changed.
    let renewals = || -> Result<usize, String> {
        let all = node.cluster.requests_by(&node.user()).map_err(|e| e.to_string())?;
        Ok(all.iter().filter(|r| r.resource == "leases" && r.verb == "update").count())
    };
    let before = renewals().expect("audit");
    wait_until("two renewals of the lease", SOON, || match renewals()? {
        n if n >= before + 2 => Ok(()),
        n => Err(n.to_string()),
    })
    .unwrap_or_else(|e| panic!("{e}"));
    node.bosun.kill();
    node.cluster.stop_apiserver();
    crash(&node, &a);
    crash(&node, &b);
    wait_for_runtime(&node, "both to be down", &[]);
    node.start_again().expect("starts alone");
    wait_for_runtime(&node, "both to run again", &["a", "b"]);
    node.cluster.start_apiserver(&mut node.bed).expect("comes back");
    wait_restarted(&node, "a", &identity(&a));
    wait_restarted(&node, "b", &identity(&b));
    node.wait_ready(SOON).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn deletions_that_came_while_the_daemon_was_away_are_honoured() {
    let mut node = start();
    for name in ["gentle", "forced", "stays"] {
        create(&node, &lasting(name));
    }
    let stays = ["gentle", "forced", "stays"].map(|name| wait_running(&node, name))[2].clone();
    node.bosun.kill();
    delete(&node, "gentle");
    node.cluster.kubectl(&["delete", "pod", "forced", "--force", "--grace-period=0"]).expect("taken out of the store");
    // The same name again, as a StatefulSet would: another pod.
    create(&node, &lasting("forced"));
    node.start_again().expect("starts again");
    wait_gone(&node, "gentle");
    wait_running(&node, "forced");
    wait_for_runtime(&node, "only what is wanted to run", &["forced", "stays"]);
    assert_eq!(identity(&wait_running(&node, "stays")), identity(&stays));
}

#[test]
fn an_emptied_api_server_stops_no_pod_and_is_joined_when_the_daemon_starts_again() {
    let mut node = start();
    create(&node, &lasting("old"));
    wait_running(&node, "old");
    let container = running_container(&node, "old");
    let before = node.node().expect("a node")["metadata"]["uid"].clone();
    node.cluster.restart_empty(&mut node.bed).expect("comes back empty");
    // It has seen the empty list once it says so.
    testbed::wait_until("the daemon to doubt the empty list", 2 * SOON, || {
        let log = std::fs::read_to_string(node.bosun.log_path()).unwrap_or_default();
        if log.contains("knows neither this node nor its pods") { Ok(()) } else { Err("not yet".to_owned()) }
    })
    .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(running_container(&node, "old"), container, "it runs on");
    // As with a kubelet, a Node that was deleted is not made anew by a daemon that runs.
    node.bosun.kill();
    node.start_again().expect("starts again");
    let after = node.wait_ready(2 * SOON).unwrap_or_else(|e| panic!("{e}"));
    assert_ne!(after["metadata"]["uid"], before, "registered anew");
    create(&node, &lasting("new"));
    wait_running(&node, "new");
}

/// Id of the pod's running container, as the daemon itself shows it.
fn running_container(node: &ClusterNode, name: &str) -> String {
    let pods = node.bosun.pods().expect("the daemon lives on");
    let pod = pods.into_iter().find(|p| p["metadata"]["name"] == name).expect("the pod is known");
    let status = &pod["status"]["containerStatuses"][0];
    assert!(!status["state"]["running"].is_null(), "{status}");
    status["containerID"].as_str().expect("an id").to_owned()
}

#[test]
fn a_restart_of_the_daemon_alone_is_hardly_seen() {
    let mut node = start();
    let probe = json!({"readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1}});
    let names: Vec<String> = (0..10).map(|n| format!("p{n}")).collect();
    for name in &names {
        create(&node, &pod(name, json!({"containers": [shell("main", LASTS, probe.clone())]})));
    }
    let before: Vec<_> = names.iter().map(|n| identity(&wait_running(&node, n))).collect();
    let pods = node.cluster.admin().watch(PODS).expect("a watch");
    let nodes = node.cluster.admin().watch("/api/v1/nodes").expect("a watch");
    let asked = node.cluster.requests_by(&node.user()).expect("audit").len();
    node.bosun.kill();
    node.start_again().expect("starts again");
    // It has listed everything and looked at everybody once a new pod is ready and a probe has run again.
    create(&node, &pod("later", json!({"containers": [shell("main", LASTS, probe)]})));
    wait_running(&node, "later");
    let after: Vec<_> = names.iter().map(|n| identity(&wait_running(&node, n))).collect();
    assert_eq!(after, before, "no container was restarted");
    let unready: Vec<_> = pods
        .seen()
        .into_iter()
        .filter(|e| e.object["metadata"]["name"] != "later" && condition(&e.object, "Ready")["status"] != "True")
        .map(|e| format!("{} {} {}", e.kind, e.object["metadata"]["name"], e.object["status"]))
        .collect();
    let log = std::fs::read_to_string(node.bosun.log_path()).unwrap_or_default();
    assert!(unready.is_empty(), "{}\n{log}", unready.join("\n"));
    let node_unready = nodes.seen().into_iter().any(|e| condition(&e.object, "Ready")["status"] != "True");
    assert!(!node_unready, "the node was never told as not ready");
    let all = node.cluster.requests_by(&node.user()).expect("audit");
    for name in &names {
        // What an older server refuses is said once more in its own words.
        let about = |r: &&testbed::Request| r.resource == "pods/status" && r.object.1 == *name && r.code < 400;
        let writes: Vec<_> = all[asked..].iter().filter(about).map(|r| r.body.to_string()).collect();
        assert!(writes.len() <= 1, "{name} was written {} times: {writes:#?}", writes.len());
    }
}
