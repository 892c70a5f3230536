use std::time::Duration;

use super::*;
use crate::{RuntimeHealth, ready_errors, updated};
use model::core::{NodeRuntimeHandler, NodeStatus};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as Api;
use model::node::Pressure;

fn status(node: &Node) -> &NodeStatus {
    node.status.as_ref().unwrap()
}

#[test]
fn each_pressure_has_its_words_and_events() {
    let table = [
        (
            Pressure::Memory,
            ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "NodeHasInsufficientMemory"),
            ("KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"),
        ),
        (
            Pressure::Disk,
            ("KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"),
            ("KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"),
        ),
        (
            Pressure::Pid,
            ("KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"),
            ("KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"),
        ),
    ];
    for (pressure, under, free) in table {
        let low = Facts { pressures: vec![pressure], ..facts() };
        let (node, events) = updated(&plan(), &fresh(), &low, T1);
        let c = condition(&node, pressure.as_str());
        let words = (c.reason.as_deref().unwrap(), c.message.as_deref().unwrap());
        assert_eq!((c.status.as_str(), words), ("True", (under.0, under.1)));
        assert_eq!(c.last_transition_time, T1.to_api());
        assert_eq!(reasons(&events), [under.2]);
        assert_eq!(events[0].message, format!("Node n1 status is now: {}", under.2));
        let (node, events) = updated(&plan(), &node, &facts(), T1);
        let c = condition(&node, pressure.as_str());
        let words = (c.reason.as_deref().unwrap(), c.message.as_deref().unwrap());
        assert_eq!((c.status.as_str(), words), ("False", (free.0, free.1)));
        assert_eq!(reasons(&events), [free.2]);
    }
}

#[test]
fn a_new_node_tells_of_its_pressures_but_not_of_ready() {
    let (_, events) = updated(&plan(), &Node::default(), &facts(), T0);
    assert_eq!(reasons(&events), ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"]);
}

#[test]
fn ready_flips_with_its_reasons_and_keeps_its_time_otherwise() {
    let down = |errors: &[&str]| Facts { not_ready: errors.iter().map(|e| (*e).to_owned()).collect(), ..facts() };
    let (node, events) = updated(&plan(), &fresh(), &down(&["a", "b", "a"]), T1);
    let c = condition(&node, "Ready");
    assert_eq!(
        (c.status.as_str(), c.reason.as_deref(), c.message.as_deref()),
        ("False", Some("KubeletNotReady"), Some("[a, b]"))
    );
    assert_eq!(reasons(&events), ["NodeNotReady"]);
    let (node, events) = updated(&plan(), &node, &down(&["c"]), Timestamp::from_secs(1_000_020));
    let c = condition(&node, "Ready");
    assert_eq!((c.message.as_deref(), &c.last_transition_time), (Some("c"), &T1.to_api()));
    assert_eq!(reasons(&events), [""; 0]);
    let (node, events) = updated(&plan(), &node, &facts(), Timestamp::from_secs(1_000_030));
    let c = condition(&node, "Ready");
    assert_eq!(
        (c.reason.as_deref(), c.message.as_deref()),
        (Some("KubeletReady"), Some("kubelet is posting ready status"))
    );
    assert_eq!(reasons(&events), ["NodeReady"]);
}

#[test]
fn a_condition_that_the_controller_made_unknown_is_set_again() {
    let mut lost = fresh();
    for c in lost.status.as_mut().unwrap().conditions.as_mut().unwrap() {
        c.status = "Unknown".into();
    }
    let (node, events) = updated(&plan(), &lost, &facts(), T1);
    assert_eq!(condition(&node, "Ready").status, "True");
    assert_eq!(
        reasons(&events),
        ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady"]
    );
}

#[test]
fn what_speaks_against_ready_stands_in_order() {
    let s = Duration::from_secs;
    let well = RuntimeHealth { spoke: true, listed: Some(s(1)), ..RuntimeHealth::default() };
    let table: Vec<(&str, RuntimeHealth, Vec<&str>)> = vec![
        ("all is well", well.clone(), vec![]),
        (
            "nothing known yet",
            RuntimeHealth::default(),
            vec!["container runtime status check may not have completed yet"],
        ),
        ("away for a moment", RuntimeHealth { away: Some(s(29)), ..well.clone() }, vec![]),
        ("away for long", RuntimeHealth { away: Some(s(30)), ..well.clone() }, vec!["container runtime is down"]),
        (
            "no list yet",
            RuntimeHealth { listed: None, ..well.clone() },
            vec!["PLEG is not healthy: pleg has yet to be successful"],
        ),
        (
            "no list for long",
            RuntimeHealth { listed: Some(s(185)), ..well.clone() },
            vec!["PLEG is not healthy: pleg was last seen active 3m5s ago; threshold is 3m0s"],
        ),
        (
            "the runtime before its network",
            RuntimeHealth { not_ready: Some("r".into()), network: Some("n".into()), ..well },
            vec!["r", "n"],
        ),
    ];
    for (what, health, expected) in table {
        assert_eq!(ready_errors(&health), expected, "{what}");
    }
}

#[test]
fn a_machine_that_cannot_be_read_has_nothing_to_give() {
    let blind = Facts { machine: None, ..facts() };
    let (node, _) = updated(&plan(), &Node::default(), &blind, T0);
    let capacity = status(&node).capacity.clone().unwrap();
    let of = |k: &str| capacity[k].0.clone();
    assert_eq!((of("cpu"), of("memory"), of("pods")), ("0".into(), "0".into(), "110".into()));
    let message = condition(&node, "Ready").message.clone().unwrap();
    assert_eq!(message, "missing node capacity for resources: ephemeral-storage");
}

#[test]
fn resources_of_others_survive_and_are_allocatable_as_a_whole() {
    let mut node = fresh();
    let s = node.status.as_mut().unwrap();
    s.capacity.as_mut().unwrap().insert("acme.com/gpu".into(), Api("4".into()));
    s.allocatable.as_mut().unwrap().insert("gone.io/x".into(), Api("1".into()));
    let (node, _) = updated(&plan(), &node, &facts(), T1);
    let allocatable = status(&node).allocatable.clone().unwrap();
    assert_eq!(allocatable["acme.com/gpu"].0, "4");
    assert_eq!(allocatable.get("gone.io/x"), None);
    assert_eq!(allocatable["cpu"].0, "1500m");
}

#[test]
fn a_reboot_is_told_once() {
    let mut f = facts();
    f.machine.as_mut().unwrap().boot_id = "boot-2".into();
    let (node, events) = updated(&plan(), &fresh(), &f, T1);
    assert_eq!(reasons(&events), ["Rebooted"]);
    assert_eq!(events[0].message, "Node n1 has been rebooted, boot id: boot-2");
    assert_eq!(reasons(&updated(&plan(), &node, &f, T1).1), [""; 0]);
}

#[test]
fn swap_shows_where_there_is_some() {
    let mut f = facts();
    f.machine.as_mut().unwrap().swap_bytes = 4096;
    let (node, _) = updated(&plan(), &fresh(), &f, T1);
    assert_eq!(status(&node).node_info.as_ref().unwrap().swap.as_ref().unwrap().capacity, Some(4096));
    assert_eq!(status(&fresh()).node_info.as_ref().unwrap().swap, None);
}

#[test]
fn images_are_the_largest_with_five_names_digests_first() {
    let names = |kind: &str, n: usize| (0..n).map(|i| format!("{kind}{i}")).collect::<Vec<_>>();
    let images = vec![
        Image { digests: names("d", 2), tags: names("t", 9), size_bytes: 1 },
        Image { digests: vec![], tags: vec!["b".into()], size_bytes: 3 },
        Image { digests: vec![], tags: vec!["a".into()], size_bytes: 3 },
        Image { digests: vec![], tags: vec!["large".into()], size_bytes: 9 },
    ];
    let with = |most| {
        let f = Facts { images: Some(images.clone()), ..facts() };
        let (node, _) = updated(&Plan { max_images: most, ..plan() }, &fresh(), &f, T1);
        let all = status(&node).images.clone().unwrap_or_default();
        all.into_iter().map(|i| i.names.unwrap().join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(with(None), ["large", "a", "b", "d0 d1 t0 t1 t2"]);
    assert_eq!(with(Some(2)), ["large", "a"]);
    assert_eq!(with(Some(0)), [""; 0]);
    let blind = Facts { images: None, ..facts() };
    assert_eq!(status(&updated(&plan(), &fresh(), &blind, T1).0).images, None);
}

#[test]
fn what_the_runtime_has_not_told_yet_stays() {
    let handler = |name: &str| NodeRuntimeHandler { name: Some(name.into()), features: None };
    let told = Facts {
        runtime_handlers: Some(vec![handler("runc"), handler("crun")]),
        supplemental_groups_policy: Some(true),
        ..facts()
    };
    let (node, _) = updated(&plan(), &fresh(), &told, T1);
    let names: Vec<_> = status(&node).runtime_handlers.iter().flatten().map(|h| h.name.clone().unwrap()).collect();
    assert_eq!(names, ["crun", "runc"]);
    let silent = Facts { runtime: None, runtime_handlers: None, ..facts() };
    let (later, _) = updated(&plan(), &node, &silent, T1);
    assert_eq!(status(&later).runtime_handlers, status(&node).runtime_handlers);
    assert_eq!(status(&later).features, status(&node).features);
    assert_eq!(status(&later).node_info.as_ref().unwrap().container_runtime_version, "containerd://2.0.0");
    let nameless = Facts { runtime: Some(RuntimeVersion { name: "cri-o".into(), version: String::new() }), ..facts() };
    let (later, _) = updated(&plan(), &node, &nameless, T1);
    assert_eq!(status(&later).node_info.as_ref().unwrap().container_runtime_version, "cri-o://Unknown");
}

#[test]
fn addresses_follow_the_provider() {
    let got = |p: &Plan, old: &Node, f: &Facts| {
        let (node, _) = updated(p, old, f, T1);
        let all = status(&node).addresses.clone().unwrap_or_default();
        let annotation =
            node.metadata.annotations.unwrap_or_default().get("alpha.kubernetes.io/provided-node-ip").cloned();
        (all.iter().map(|a| format!("{}={}", a.type_, a.address)).collect::<Vec<_>>(), annotation)
    };
    let cloud = Plan { external_cloud: true, ..plan() };
    let told = Plan { node_ips: vec![ip("10.0.0.1"), ip("fd00::1")], ..cloud.clone() };
    let two = Facts { addresses: Some(Ok(told.node_ips.clone())), ..facts() };
    let lost = Facts { addresses: Some(Err("no".into())), ..facts() };
    let bare = Node::default();
    let (own, name) = ("InternalIP=10.0.0.1", "Hostname=n1");
    assert_eq!(got(&plan(), &bare, &facts()), (vec![own.into(), name.into()], None));
    assert_eq!(got(&plan(), &bare, &lost), (vec![], None));
    assert_eq!(got(&plan(), &fresh(), &lost), (vec![own.into(), name.into()], None), "kept");
    assert_eq!(got(&cloud, &bare, &facts()), (vec![name.into()], None), "until the controller knows");
    assert_eq!(got(&cloud, &fresh(), &two), (vec![own.into(), name.into()], None), "the controller's");
    let both = vec![own.into(), "InternalIP=fd00::1".into(), name.into()];
    assert_eq!(got(&told, &bare, &two), (both, Some("10.0.0.1,fd00::1".into())));
}

#[test]
fn labels_of_system_and_architecture_come_back() {
    let mut node = fresh();
    node.metadata.labels = None;
    let (node, _) = updated(&plan(), &node, &facts(), T1);
    assert_eq!(labels(&node)["kubernetes.io/os"], "linux");
    assert_eq!(labels(&node)["kubernetes.io/arch"], "amd64");
}
