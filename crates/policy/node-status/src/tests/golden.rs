//! The whole Node of a kubelet 1.36.2, from the facts of the machine that it ran on.

use super::*;
use model::k8s_openapi::jiff;

const NODE: &str = include_str!("../../../../../tests/golden/kubelet-1.36.2/_node/node.json");
const LEASE: &str = include_str!("../../../../../tests/golden/kubelet-1.36.2/_node/lease.json");

fn at(text: &str) -> Timestamp {
    let t: jiff::Timestamp = text.parse().unwrap();
    Timestamp(i64::try_from(t.as_nanosecond()).unwrap())
}

fn golden_plan() -> Plan {
    Plan {
        name: "gold-node".into(),
        hostname: "gold-node".into(),
        max_pods: 300,
        port: 10350,
        declared_features: Some(
            [
                "ExtendWebSocketsToKubelet",
                "InPlacePodLevelResourcesVerticalScaling",
                "InPlacePodVerticalScalingInitContainers",
                "RestartAllContainersOnContainerExits",
            ]
            .map(str::to_owned)
            .into(),
        ),
        ..plan()
    }
}

fn golden_facts() -> Facts {
    let capacity = amounts(&[
        ("cpu", "2"),
        ("memory", "24684092Ki"),
        ("ephemeral-storage", "264212084Ki"),
        ("pods", "300"),
        ("hugepages-1Gi", "0"),
        ("hugepages-2Mi", "0"),
    ]);
    // evictionHard of that node: 100Mi of memory, one percent of the disk.
    let aside = amounts(&[("memory", "100Mi"), ("ephemeral-storage", "2705531679")]);
    let left = |(k, q): (&String, &Quantity)| (k.clone(), q.minus(aside.get(k).copied().unwrap_or_default()));
    let allocatable = capacity.iter().map(left).collect();
    let image = |size_bytes: u64, tags: &[&str]| Image {
        digests: vec![],
        tags: tags.iter().map(|t| (*t).to_owned()).collect(),
        size_bytes,
    };
    let e2e = |names: &[&str]| -> Vec<String> {
        names.iter().map(|n| format!("registry.k8s.io/e2e-test-images/{n}")).collect()
    };
    let of = |size_bytes, names: &[&str]| Image { digests: vec![], tags: e2e(names), size_bytes };
    Facts {
        addresses: Some(Ok(vec![ip("10.90.0.1")])),
        machine: Some(Machine {
            machine_id: "<machine-id>".into(),
            system_uuid: "<system-uuid>".into(),
            boot_id: "<boot-id>".into(),
            swap_bytes: 0,
            allocatable,
            capacity,
        }),
        kernel_version: "6.18.44-fc-v657".into(),
        os_image: "Debian GNU/Linux 12 (bookworm)".into(),
        runtime: Some(RuntimeVersion { name: "containerd".into(), version: "1.6.20".into() }),
        images: Some(vec![
            image(
                686_924,
                &[
                    "k8s.gcr.io/pause:3.6",
                    "registry.k8s.io/pause:3.10",
                    "registry.k8s.io/pause:3.6",
                    "registry.k8s.io/pause:3.8",
                ],
            ),
            of(23_808_828, &["nonroot:1.4"]),
            of(58_809_456, &["agnhost:2.53"]),
            of(23_819_423, &["httpd:2.4.38-4", "httpd:2.4.39-4"]),
            of(24_495_192, &["nonewprivs:1.3"]),
            of(23_819_419, &["nginx:1.14-4", "nginx:1.15-4"]),
            of(23_808_812, &["busybox:1.29-2", "busybox:1.36.1-1"]),
        ]),
        runtime_handlers: Some(vec![]),
        ..Facts::default()
    }
}

#[test]
fn the_whole_node_is_that_of_a_kubelet() {
    let golden: Node = serde_json::from_str(NODE).unwrap();
    let created = at("2026-11-20T08:51:37Z");
    let first =
        Facts { not_ready: vec!["container runtime status check may not have completed yet".into()], ..golden_facts() };
    let mut node = crate::initial(&golden_plan(), &first, created);
    // What the API server and controllers added, and what an operator did (cordon) before the recording.
    node.metadata.uid.clone_from(&golden.metadata.uid);
    node.metadata.resource_version.clone_from(&golden.metadata.resource_version);
    node.metadata.creation_timestamp.clone_from(&golden.metadata.creation_timestamp);
    node.metadata.annotations.as_mut().unwrap().insert("node.alpha.kubernetes.io/ttl".into(), "0".into());
    node.spec.clone_from(&golden.spec);
    let (node, events) = crate::updated(&golden_plan(), &node, &golden_facts(), at("2026-11-20T08:51:38Z"));
    assert_eq!(reasons(&events), ["NodeReady"]);
    let wanted: serde_json::Value = serde_json::from_str(NODE).unwrap();
    assert_eq!(serde_json::to_value(&node).unwrap(), wanted);
}

#[test]
fn a_node_made_by_a_kubelet_is_taken_over_without_a_word() {
    let golden: Node = serde_json::from_str(NODE).unwrap();
    let (node, events) = crate::updated(&golden_plan(), &golden, &golden_facts(), at("2026-11-20T09:00:00Z"));
    assert_eq!(reasons(&events), [""; 0]);
    assert!(!crate::changed(&golden, &node));
    let wanted = crate::initial(&golden_plan(), &golden_facts(), at("2026-11-20T09:00:00Z"));
    assert_eq!(crate::reconciled(&golden, &wanted), golden);
}

#[test]
fn the_lease_is_that_of_a_kubelet() {
    let wanted: serde_json::Value = serde_json::from_str(LEASE).unwrap();
    let uid = "2692e049-c2e4-47f9-8ddf-dd2a782f1ba3";
    let mut lease = crate::lease::new("gold-node", uid, 40, at("2026-11-20T08:51:47Z"));
    lease.metadata.uid = Some("6370ce72-dff1-43f5-8c7e-060bc8233fbc".into());
    lease.metadata.resource_version = Some("13113".into());
    let created: jiff::Timestamp = "2026-11-20T08:51:47Z".parse().unwrap();
    lease.metadata.creation_timestamp = Some(model::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(created));
    let lease = crate::lease::renewed(&lease, "gold-node", None, 40, at("2026-11-20T08:54:31.301464987Z"));
    assert_eq!(serde_json::to_value(&lease).unwrap(), wanted);
}
