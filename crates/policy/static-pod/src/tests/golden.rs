//! Pods as a Go kubelet 1.36.2 made them of the same manifests.

use super::*;

macro_rules! golden {
    ($($case:literal),* $(,)?) => {
        [$(($case,
            include_str!(concat!("../../../../../tests/golden/kubelet-1.36.2/", $case, "/manifest.yaml")),
            include_str!(concat!("../../../../../tests/golden/kubelet-1.36.2/", $case, "/pod.json")))),*]
    };
}

#[test]
fn makes_the_pod_that_a_kubelet_makes() {
    let cases = golden![
        "static-guaranteed",
        "static-hooks",
        "static-host-ns",
        "static-init-two",
        "static-plain",
        "static-ports",
        "static-probes",
        "static-run-once-fail",
        "static-run-once-ok",
        "static-security",
        "static-sidecar",
    ];
    let origin = Origin { node_name: "gold-node", source: Source::File("/etc/kubernetes/manifests/x.yaml") };
    for (name, manifest, pod) in cases {
        let ours = serde_json::to_value(read_manifest(manifest.as_bytes(), &origin).unwrap().pod).unwrap();
        let theirs: Value = serde_json::from_str(pod).unwrap();
        assert_eq!(ours["spec"], theirs["spec"], "{name}");
        assert_eq!(ours["metadata"]["name"], theirs["metadata"]["name"], "{name}");
        assert_eq!(ours["metadata"]["namespace"], theirs["metadata"]["namespace"], "{name}");
        assert_eq!(ours["metadata"]["labels"], theirs["metadata"]["labels"], "{name}");
    }
}
