//! From a bootstrap token to certificates of the node's own, and on to the next ones.

use std::path::PathBuf;

use serde_json::Value;
use testbed::{ClusterNode, ClusterOptions, Identity, NodeOptions};

use crate::node::{SOON, condition, create, lasting, start_with, wait_running};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn bootstrap(signing_seconds: u32) -> ClusterNode {
    let cluster = ClusterOptions { signing_seconds, ..ClusterOptions::default() };
    start_with(NodeOptions { cluster, identity: Identity::Bootstrap, ..NodeOptions::default() })
}

/// Requests for one signer, oldest first.
fn requests(node: &ClusterNode, signer: &str) -> Vec<Value> {
    let mut all = node.cluster.admin().list(REQUESTS).expect("a list");
    all.retain(|r| r["spec"]["signerName"] == signer);
    all.sort_by_key(|r| r["metadata"]["creationTimestamp"].as_str().map(str::to_owned));
    all
}

fn target(node: &ClusterNode, link: &str) -> Result<PathBuf, String> {
    let path = node.cert_dir().join(link);
    std::fs::read_link(&path).map_err(|e| format!("{}: {e}", path.display()))
}

#[test]
fn a_token_becomes_a_client_and_a_serving_certificate() {
    let mut node = bootstrap(24 * 3600);
    let asked = requests(&node, "kubernetes.io/kube-apiserver-client-kubelet");
    assert_eq!(asked.len(), 1, "{asked:#?}");
    assert_eq!(asked[0]["spec"]["username"], "system:bootstrap:abcdef");
    let usages = asked[0]["spec"]["usages"].to_string();
    assert!(usages.contains("client auth") && usages.contains("digital signature"), "{usages}");
    assert_eq!(condition(&asked[0], "Approved")["status"], "True", "the cluster's own approver did it: {asked:#?}");
    let conf = std::fs::read_to_string(node.bed.dir().join("kubelet.conf")).expect("a kubeconfig was written");
    assert!(conf.contains("kubelet-client-current.pem") && conf.contains(&node.cluster.server()), "{conf}");
    assert!(!conf.contains("0123456789abcdef"), "the token stays where it was: {conf}");
    let pem = std::fs::read_to_string(node.cert_dir().join("kubelet-client-current.pem")).expect("the current one");
    assert!(pem.contains("BEGIN CERTIFICATE") && pem.contains("PRIVATE KEY"), "both in one file");
    let link = target(&node, "kubelet-client-current.pem").expect("a link");
    let name = link.file_name().unwrap_or_default().to_string_lossy().into_owned();
    assert!(name.starts_with("kubelet-client-20") && name.ends_with(".pem"), "{name}");

    let serving = testbed::wait_until("a request for a serving certificate", SOON, || {
        requests(&node, "kubernetes.io/kubelet-serving").pop().ok_or_else(|| node.bosun.log())
    });
    let serving = serving.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(serving["spec"]["username"], node.user().as_str());
    assert!(serving["spec"]["usages"].to_string().contains("server auth"), "{serving}");
    target(&node, "kubelet-server-current.pem").expect_err("nobody approved it yet");
    let name = serving["metadata"]["name"].as_str().expect("a name").to_owned();
    node.cluster.kubectl(&["certificate", "approve", &name]).expect("approved");
    testbed::wait_until("the serving certificate", SOON, || {
        target(&node, "kubelet-server-current.pem").map_err(|e| format!("{e}\n{}", node.bosun.log()))
    })
    .unwrap_or_else(|e| panic!("{e}"));

    // With both in place a restart asks for nothing.
    node.bosun.kill();
    node.start_again().expect("starts again");
    node.wait_ready(SOON).unwrap_or_else(|e| panic!("{e}"));
    create(&node, &lasting("after"));
    wait_running(&node, "after");
    assert_eq!(node.cluster.admin().list(REQUESTS).expect("a list").len(), 2, "no new requests");
}

#[test]
fn a_client_certificate_is_renewed_without_losing_the_cluster() {
    // They begin five minutes early, so between 70 % and 90 % of their life lie 15 to 105 seconds from now.
    let node = bootstrap(150);
    create(&node, &lasting("before"));
    wait_running(&node, "before");
    let first = target(&node, "kubelet-client-current.pem").expect("a link");
    testbed::wait_until("the next certificate", 2 * SOON, || match target(&node, "kubelet-client-current.pem") {
        Ok(now) if now != first => Ok(()),
        other => Err(format!("{other:?}\n{}", node.bosun.log())),
    })
    .unwrap_or_else(|e| panic!("{e}"));
    let asked = requests(&node, "kubernetes.io/kube-apiserver-client-kubelet");
    assert_eq!(asked[1]["spec"]["username"], node.user().as_str(), "the node itself asked for the second: {asked:#?}");
    create(&node, &lasting("after"));
    wait_running(&node, "after");
    assert_eq!(condition(&node.node().expect("a node"), "Ready")["status"], "True");
}
