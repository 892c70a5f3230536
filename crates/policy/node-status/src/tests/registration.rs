use super::*;
use crate::{initial, reconciled};
use model::core::{NodeSpec, Taint};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as Api;

fn taint(key: &str, effect: &str) -> Taint {
    Taint { key: key.into(), effect: effect.into(), ..Taint::default() }
}

fn keys(node: &Node) -> Vec<String> {
    let taints = node.spec.as_ref().and_then(|s| s.taints.clone()).unwrap_or_default();
    taints.iter().map(|t| format!("{}={}:{}", t.key, t.value.clone().unwrap_or_default(), t.effect)).collect()
}

#[test]
fn a_new_node_has_its_labels_annotation_and_a_complete_status() {
    let node = fresh();
    let expected = [
        ("beta.kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", "n1"),
        ("kubernetes.io/os", "linux"),
    ];
    let got: Vec<_> = labels(&node).iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(got, expected);
    let annotations = node.metadata.annotations.clone().unwrap();
    assert_eq!(annotations["volumes.kubernetes.io/controller-managed-attach-detach"], "true");
    assert_eq!(keys(&node), [""; 0]);
    assert_eq!(condition(&node, "Ready").status, "True");
}

#[test]
fn configuration_adds_to_a_new_node() {
    let p = Plan {
        labels: [("kubernetes.io/hostname", "other"), ("disk", "ssd")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
        taints: vec![taint("dedicated", "NoExecute")],
        unschedulable: true,
        external_cloud: true,
        provider_id: Some("acme://1".into()),
        controller_attach_detach: false,
        ..plan()
    };
    let node = initial(&p, &facts(), T0);
    assert_eq!(labels(&node)["kubernetes.io/hostname"], "other");
    assert_eq!(labels(&node)["disk"], "ssd");
    assert_eq!(
        keys(&node),
        [
            "dedicated=:NoExecute",
            "node.kubernetes.io/unschedulable=:NoSchedule",
            "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule"
        ]
    );
    let spec = node.spec.clone().unwrap();
    assert_eq!((spec.unschedulable, spec.provider_id.as_deref()), (Some(true), Some("acme://1")));
    assert_eq!(node.metadata.annotations, None);
    let twice =
        Plan { taints: vec![taint("node.kubernetes.io/unschedulable", "NoSchedule")], external_cloud: false, ..p };
    assert_eq!(keys(&initial(&twice, &facts(), T0)), ["node.kubernetes.io/unschedulable=:NoSchedule"]);
}

#[test]
fn an_existing_node_keeps_what_is_not_ours() {
    let mut existing = fresh();
    existing.spec = Some(NodeSpec { taints: Some(vec![taint("user", "NoSchedule")]), ..NodeSpec::default() });
    existing.metadata.labels.as_mut().unwrap().insert("team".into(), "red".into());
    let p = Plan {
        taints: vec![taint("mine", "NoSchedule")],
        unschedulable: true,
        provider_id: Some("acme://1".into()),
        labels: [("disk".to_owned(), "ssd".to_owned())].into(),
        ..plan()
    };
    assert_eq!(reconciled(&existing, &initial(&p, &facts(), T1)), existing);
}

#[test]
fn an_existing_node_is_put_right_where_it_is_ours() {
    let mut existing = fresh();
    let l = existing.metadata.labels.as_mut().unwrap();
    l.insert("kubernetes.io/hostname".into(), "old".into());
    l.remove("kubernetes.io/os");
    l.insert("topology.kubernetes.io/zone".into(), "z1".into());
    l.insert("node.kubernetes.io/instance-type".into(), "big".into());
    existing.metadata.annotations = None;
    let status = existing.status.as_mut().unwrap();
    let capacity = status.capacity.as_mut().unwrap();
    capacity.insert("acme.com/gpu".into(), Api("4".into()));
    capacity.insert("hugepages-1Gi".into(), Api("1Gi".into()));
    capacity.insert("hugepages-2Mi".into(), Api("64Mi".into()));
    status.allocatable.as_mut().unwrap().insert("acme.com/gpu".into(), Api("3".into()));
    let p = Plan { labels: [("node.kubernetes.io/instance-type".to_owned(), String::new())].into(), ..plan() };
    let node = reconciled(&existing, &initial(&p, &facts(), T1));
    assert_eq!(labels(&node)["kubernetes.io/hostname"], "n1");
    assert_eq!(labels(&node)["kubernetes.io/os"], "linux");
    assert_eq!(labels(&node)["topology.kubernetes.io/zone"], "z1", "not ours to say: left alone");
    assert_eq!(labels(&node).get("node.kubernetes.io/instance-type"), None, "empty: taken away");
    assert!(node.metadata.annotations.is_some());
    let status = node.status.unwrap();
    let (capacity, allocatable) = (status.capacity.unwrap(), status.allocatable.unwrap());
    assert_eq!((capacity["acme.com/gpu"].0.as_str(), allocatable["acme.com/gpu"].0.as_str()), ("0", "0"));
    assert_eq!(capacity.get("hugepages-1Gi"), None);
    assert_eq!(capacity["hugepages-2Mi"].0, "0");
}
