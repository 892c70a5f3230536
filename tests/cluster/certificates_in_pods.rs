//! Certificates and trust anchors in volumes of pods (`podCertificate`, `clusterTrustBundle`): the API server checks what the node
//! asks for, a signer of the test issues, and the pod reads.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use testbed::{BosunOptions, ClusterNode, ClusterOptions, ControlPlane, NodeOptions};

use self::signer::{Signer, another_root};
use crate::node::{SOON, create, pod, shell, start_with, wait_running};

mod signer;

/// A certificate is due five minutes after it was issued at the earliest, and a node takes up to five more, by chance.
const RENEWED: Duration = Duration::from_secs(11 * 60);

/// Writes what is in the volume, whenever that is something else.
const READS: &str = "trap 'exit 0' TERM; last=; while :; do now=$(readlink /identity/..data); \
    if [ \"$now\" != \"$last\" ]; then last=$now; echo '== begin'; \
    for f in bundle key chain named picked; do echo \"== file $f\"; cat /identity/$now/$f; done; echo '== end'; fi; \
    sleep 0.2; done";

/// A node of a server that has these objects; `None` where the server is too old for them, which is told.
fn start() -> Option<ClusterNode> {
    let minor = ControlPlane::find().unwrap_or_else(|e| panic!("{e}")).minor();
    if minor < 35 {
        eprintln!("left out: an API server of 1.{minor} has no PodCertificateRequests of v1beta1, one of 1.35 has");
        return None;
    }
    let gates = "ClusterTrustBundle=true,ClusterTrustBundleProjection=true,PodCertificateRequest=true";
    let served =
        ["clustertrustbundles", "podcertificaterequests"].map(|k| format!("certificates.k8s.io/v1beta1/{k}=true"));
    let flags = vec![format!("--feature-gates={gates}"), format!("--runtime-config={}", served.join(","))];
    let of_node =
        json!({"ClusterTrustBundle": true, "ClusterTrustBundleProjection": true, "PodCertificateRequest": true});
    Some(start_with(NodeOptions {
        cluster: ClusterOptions { apiserver_flags: flags, ..ClusterOptions::default() },
        bosun: BosunOptions { config: json!({"featureGates": of_node}), ..BosunOptions::default() },
        ..NodeOptions::default()
    }))
}

/// A pod that has a certificate and knows whom to trust, and writes what it reads of both.
fn reader(name: &str, key_type: &str) -> Value {
    let sources = json!([
        {"podCertificate": {"signerName": Signer::NAME, "keyType": key_type, "maxExpirationSeconds": 3600,
            "credentialBundlePath": "bundle", "keyPath": "key", "certificateChainPath": "chain",
            "userAnnotations": {"bed.example/for": name}}},
        {"clusterTrustBundle": {"name": Signer::BUNDLE, "path": "named"}},
        {"clusterTrustBundle": {"signerName": Signer::NAME, "labelSelector": {"matchLabels": {"for": "pods"}},
            "path": "picked"}},
    ]);
    let mounts = json!({"volumeMounts": [{"name": "identity", "mountPath": "/identity"}]});
    let volumes = json!([{"name": "identity", "projected": {"sources": sources}}]);
    pod(name, json!({"containers": [shell("main", READS, mounts)], "volumes": volumes}))
}

/// Files of the volume by name, as the pod read them last.
fn read(node: &ClusterNode, pod: &Value) -> BTreeMap<String, String> {
    let text = node.output(pod, "main");
    let whole = text.rsplit("== begin\n").find_map(|t| t.split_once("== end\n")).map_or("", |(files, _)| files);
    let files = whole.split("== file ").filter_map(|t| t.split_once('\n'));
    files.map(|(name, content)| (name.to_owned(), content.to_owned())).collect()
}

/// Waits until what the pod reads looks as `good` says; answers that.
fn wait_read(
    node: &ClusterNode,
    pod: &Value,
    what: &str,
    good: impl Fn(&BTreeMap<String, String>) -> bool,
) -> BTreeMap<String, String> {
    testbed::wait_until(what, 2 * SOON, || {
        let files = read(node, pod);
        if good(&files) { Ok(files) } else { Err(format!("{files:?}")) }
    })
    .unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()))
}

/// What `openssl`, which has no part in any of this, prints; it must end well.
fn openssl(args: &[&str]) -> String {
    let done = Command::new("openssl").args(args).output().expect("this test needs the program `openssl`");
    assert!(done.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// The files are one identity: a key of that kind, a certificate for it and for this pod, and roots that it comes from.
fn check(node: &ClusterNode, pod: &Value, files: &BTreeMap<String, String>, kind: &str) {
    let name = pod["metadata"]["name"].as_str().expect("a name");
    assert_eq!(files["bundle"], format!("{}{}", files["key"], files["chain"]), "{name}");
    assert_eq!(files["named"], files["picked"], "{name}");
    let path = |file: &str| node.bed.dir().join(format!("{name}-{file}")).to_string_lossy().into_owned();
    for (file, content) in files {
        std::fs::write(path(file), content).expect("written");
    }
    let (key, chain, roots) = (path("key"), path("chain"), path("named"));
    assert!(openssl(&["pkey", "-in", &key, "-noout", "-text"]).contains(kind), "{name} has a key of {kind}");
    let of_certificate = openssl(&["x509", "-in", &chain, "-noout", "-pubkey"]);
    assert_eq!(openssl(&["pkey", "-in", &key, "-pubout"]), of_certificate, "{name}");
    assert_eq!(openssl(&["x509", "-in", &chain, "-noout", "-subject"]).trim(), format!("subject=CN = {name}"));
    openssl(&["verify", "-CAfile", &roots, "-untrusted", &chain, &chain]);
}

/// Two pods, each with the name that openssl has for its key, as the API server shows them once they run.
fn readers(node: &ClusterNode, signer: &mut Signer) -> [(Value, &'static str); 2] {
    let kinds = [("elliptic", "ECDSAP256", "prime256v1"), ("prime", "RSA3072", "3072 bit")];
    for (name, key_type, _) in kinds {
        create(node, &reader(name, key_type));
    }
    for request in signer.issue(node, 2, SOON) {
        let spec = &request["spec"];
        assert_eq!((&spec["nodeName"], &spec["serviceAccountName"]), (&json!("bed"), &json!("default")), "{request:#}");
        assert_eq!(spec["unverifiedUserAnnotations"]["bed.example/for"], spec["podName"], "{request:#}");
    }
    kinds.map(|(name, _, kind)| (wait_running(node, name), kind))
}

#[test]
fn the_server_takes_a_proof_by_a_key_of_each_type() {
    let Some(node) = start() else { return };
    let signer = Signer::start(&node);
    let types = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
    for key_type in types {
        create(&node, &reader(&key_type.to_lowercase(), key_type));
    }
    // It refuses a request whose signature is not by the key that it names.
    let requests = signer.waiting(&node, types.len(), SOON);
    let pods: BTreeSet<&str> = requests.iter().filter_map(|r| r["spec"]["podName"].as_str()).collect();
    assert_eq!(pods, types.map(str::to_lowercase).iter().map(String::as_str).collect());
}

#[test]
fn pods_read_their_certificates_and_whom_to_trust() {
    let Some(mut node) = start() else { return };
    let mut signer = Signer::start(&node);
    let pods = readers(&node, &mut signer);
    let first = pods.each_ref().map(|(pod, kind)| {
        let files = wait_read(&node, pod, "an identity", |f| f.contains_key("picked"));
        assert_eq!(files["named"], signer.root());
        check(&node, pod, &files, kind);
        files
    });

    let both = format!("{}{}", signer.root(), another_root());
    signer.trust(&node, &both);
    for (pod, kind) in &pods {
        let files = wait_read(&node, pod, "two roots", |f| f["named"].matches("BEGIN").count() == 2);
        check(&node, pod, &files, kind);
    }

    // Keys are in the memory of the daemon alone: the next one asks anew, and the pods run on with what they have until then.
    node.bosun.kill();
    node.start_again().expect("starts again");
    assert_eq!(signer.issue(&node, 2, SOON).len(), 2);
    for ((pod, kind), before) in pods.iter().zip(&first) {
        let files = wait_read(&node, pod, "another key", |f| f["key"] != before["key"]);
        check(&node, pod, &files, kind);
        let now = wait_running(&node, pod["metadata"]["name"].as_str().expect("a name"));
        assert_eq!(now["status"]["containerStatuses"][0]["restartCount"], 0);
    }
}

#[test]
fn certificates_are_renewed_under_running_pods() {
    let Some(node) = start() else { return };
    let mut signer = Signer::start(&node);
    let pods = readers(&node, &mut signer);
    let first = pods.each_ref().map(|(pod, _)| wait_read(&node, pod, "an identity", |f| f.contains_key("picked")));
    let mut renewed = 0;
    while renewed < pods.len() {
        // Each in its own time; those that are not due keep what they have.
        renewed += signer.issue(&node, 1, RENEWED).len();
        let changed = || pods.iter().zip(&first).filter(|((pod, _), f)| read(&node, pod)["key"] != f["key"]).count();
        testbed::wait_until("another key", 2 * SOON, || match changed() {
            n if n == renewed => Ok(()),
            n => Err(format!("{n} of {renewed}")),
        })
        .unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()));
    }
    for (pod, kind) in &pods {
        check(&node, pod, &read(&node, pod), kind);
        let now = wait_running(&node, pod["metadata"]["name"].as_str().expect("a name"));
        assert_eq!(now["status"]["containerStatuses"][0]["restartCount"], 0);
    }
}
