//! One row per rule of the handlers around the predicates.

use super::*;
use model::core::{
    AppArmorProfile, ContainerRestartRule, Node, NodeCondition, NodeFeatures, NodeSpec, NodeStatus, PodStatus,
    SecurityContext, Taint, Toleration,
};

fn edited(edit: impl FnOnce(&mut NodeFacts)) -> NodeFacts {
    let mut n = node();
    edit(&mut n);
    n
}

fn tolerating(key: &str, operator: &str, value: Option<&str>, effect: &str) -> Pod {
    pod(|p| {
        spec(p).tolerations = Some(vec![Toleration {
            key: Some(key.into()),
            operator: Some(operator.into()),
            value: value.map(Into::into),
            effect: Some(effect.into()),
            ..Default::default()
        }]);
    })
}

fn of_priority(priority: i32) -> Pod {
    pod(|p| spec(p).priority = Some(priority))
}

fn from_file(mut p: Pod) -> Pod {
    p.metadata.annotations = Some([(model::pod::CONFIG_SOURCE.to_owned(), "file".to_owned())].into());
    p
}

/// Edges 56 and 57.
#[test]
fn pressure_refuses_by_quality_of_service_and_toleration() {
    use Pressure::{Disk, Memory, Pid};
    let tolerant = tolerating("node.kubernetes.io/memory-pressure", "Exists", None, "NoSchedule");
    let table: Vec<(&str, Vec<Pressure>, Pod, &str)> = vec![
        ("no pressure", vec![], pod(|_| ()), "admitted"),
        ("best effort under memory pressure", vec![Memory], pod(|_| ()), "Evicted"),
        ("best effort that tolerates it", vec![Memory], tolerant.clone(), "admitted"),
        ("burstable under memory pressure", vec![Memory], asks("1", "0"), "admitted"),
        ("burstable under disk pressure", vec![Disk], asks("1", "0"), "Evicted"),
        ("burstable under pid pressure", vec![Pid], asks("1", "0"), "Evicted"),
        ("tolerant, but the disk is full too", vec![Memory, Disk], tolerant, "Evicted"),
        ("system priority", vec![Memory, Disk, Pid], of_priority(2_000_000_000), "admitted"),
        ("high priority alone", vec![Disk], of_priority(1_999_999_999), "Evicted"),
        ("static", vec![Disk], from_file(pod(|_| ())), "admitted"),
    ];
    for (what, pressures, pod, expected) in table {
        assert_eq!(on(&edited(|n| n.pressures = pressures), &pod, &[]), expected, "{what}");
    }
    let both = edited(|n| n.pressures = vec![Memory, Disk]);
    let r = admit(&pod(|_| ()), [].iter(), &both).unwrap_err();
    assert_eq!(r.message, "The node had condition: [MemoryPressure DiskPressure]. ");
}

#[test]
fn sysctls_are_safe_or_allowed_and_never_the_hosts() {
    type Kernel = Option<(u32, u32)>;
    let with = |name: &str, edit: fn(&mut PodSpec)| sets(name, edit);
    let table: Vec<(&str, Pod, Kernel, &str)> = vec![
        ("safe", with("net.ipv4.tcp_syncookies", |_| ()), None, ""),
        ("safe with slashes", with("net/ipv4/tcp_syncookies", |_| ()), None, ""),
        ("unknown", with("vm.swappiness", |_| ()), None, r#"forbidden sysctl: "vm.swappiness" not allowlisted"#),
        ("allowed by prefix", with("kernel.msgmax", |_| ()), None, ""),
        ("allowed by prefix of the net", with("net.core.somaxconn", |_| ()), None, ""),
        (
            "allowed, yet the host's",
            with("net.core.somaxconn", |s| s.host_network = Some(true)),
            None,
            r#"forbidden sysctl: "net.core.somaxconn" not allowed with host net enabled"#,
        ),
        (
            "ipc sysctl in the host's ipc",
            with("kernel.shm_rmid_forced", |s| s.host_ipc = Some(true)),
            None,
            r#"forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host ipc enabled"#,
        ),
        (
            "a dot inside a name",
            with("net/ipv4/conf/eth0.100/forwarding", |_| ()),
            None,
            r#"forbidden sysctl: "net.ipv4.conf.eth0/100.forwarding" not allowlisted"#,
        ),
        ("new enough kernel", with("net.ipv4.tcp_rmem", |_| ()), Some((4, 15)), ""),
        (
            "kernel too old",
            with("net.ipv4.tcp_rmem", |_| ()),
            Some((4, 14)),
            r#"forbidden sysctl: "net.ipv4.tcp_rmem" not allowlisted"#,
        ),
    ];
    for (what, pod, kernel, expected) in table {
        let got = admit(&pod, [].iter(), &edited(|n| n.kernel = kernel));
        let text = got.err().map(|r| (r.reason, r.message));
        let wanted = (!expected.is_empty()).then(|| ("SysctlForbidden".to_owned(), expected.to_owned()));
        assert_eq!(text, wanted, "{what}");
    }
}

#[test]
fn only_evicting_taints_count_and_not_for_static_pods() {
    let taint = |effect: &str| Taint {
        key: "maint".into(),
        value: Some("yes".into()),
        effect: effect.into(),
        ..Default::default()
    };
    let table: Vec<(&str, &str, Pod, &str)> = vec![
        ("untolerated NoExecute", "NoExecute", pod(|_| ()), "TaintToleration"),
        ("NoSchedule is the scheduler's", "NoSchedule", pod(|_| ()), "admitted"),
        ("static pod", "NoExecute", from_file(pod(|_| ())), "admitted"),
        ("same key and value", "NoExecute", tolerating("maint", "Equal", Some("yes"), "NoExecute"), "admitted"),
        ("operator left out", "NoExecute", tolerating("maint", "", Some("yes"), "NoExecute"), "admitted"),
        ("other value", "NoExecute", tolerating("maint", "Equal", Some("no"), "NoExecute"), "TaintToleration"),
        ("key exists", "NoExecute", tolerating("maint", "Exists", None, "NoExecute"), "admitted"),
        ("any effect", "NoExecute", tolerating("maint", "Exists", None, ""), "admitted"),
        ("other effect", "NoExecute", tolerating("maint", "Exists", None, "NoSchedule"), "TaintToleration"),
        ("any key", "NoExecute", tolerating("", "Exists", None, ""), "admitted"),
        ("operator behind a gate", "NoExecute", tolerating("maint", "Gt", Some("1"), ""), "TaintToleration"),
    ];
    for (what, effect, pod, expected) in table {
        assert_eq!(on(&edited(|n| n.taints = vec![taint(effect)]), &pod, &[]), expected, "{what}");
    }
}

fn profiled(kind: &str, phase: &str) -> Pod {
    pod(|p| {
        let profile = AppArmorProfile { type_: kind.into(), localhost_profile: None };
        spec(p).containers[0].security_context =
            Some(SecurityContext { app_armor_profile: Some(profile), ..Default::default() });
        p.status = Some(PodStatus { phase: Some(phase.into()), ..Default::default() });
    })
}

fn restarts_all() -> Pod {
    pod(|p| {
        let rule = ContainerRestartRule { action: "RestartAllContainers".into(), ..Default::default() };
        spec(p).containers[0].restart_policy_rules = Some(vec![rule]);
    })
}

fn strict_groups() -> Pod {
    pod(|p| {
        spec(p).security_context =
            Some(PodSecurityContext { supplemental_groups_policy: Some("Strict".into()), ..Default::default() });
    })
}

#[test]
fn what_the_machine_lacks_refuses_the_pod() {
    let declares = |f: &str| edited(|n| n.declared_features = Some(vec![f.to_owned()]));
    let annotated = pod(|p| {
        let key = "container.apparmor.security.beta.kubernetes.io/app".to_owned();
        p.metadata.annotations = Some([(key, "runtime/default".to_owned())].into());
    });
    let off = || edited(|n| n.apparmor = false);
    let rules = "RestartAllContainersOnContainerExits";
    let table: Vec<(&str, NodeFacts, Pod, &str)> = vec![
        ("AppArmor is there", node(), profiled("RuntimeDefault", "Pending"), "admitted"),
        ("AppArmor is not there", off(), profiled("RuntimeDefault", "Pending"), "AppArmor"),
        ("nobody asked for it", off(), profiled("Unconfined", "Pending"), "admitted"),
        ("it ran before", off(), profiled("RuntimeDefault", "Running"), "admitted"),
        ("asked for by annotation", off(), annotated, "AppArmor"),
        ("a profile without a name", node(), profiled("Localhost", "Pending"), "AppArmor"),
        ("it ran before without a name", node(), profiled("Localhost", "Running"), "admitted"),
        ("pod-level resources, gate on", node(), pod_level("1"), "admitted"),
        (
            "pod-level resources, gate off",
            edited(|n| n.pod_level_resources = false),
            pod_level("1"),
            "PodLevelResourcesNotSupported",
        ),
        ("a feature that is declared", declares(rules), restarts_all(), "admitted"),
        ("a feature that is not declared", declares("x"), restarts_all(), "PodFeatureUnsupported"),
        ("features are not declared at all", node(), restarts_all(), "admitted"),
        ("strict groups, no support", node(), strict_groups(), "SupplementalGroupsPolicyNotSupported"),
        ("strict groups", edited(|n| n.supplemental_groups_policy = true), strict_groups(), "admitted"),
        ("going down", edited(|n| n.shutting_down = true), pod(|_| ()), "NodeShutdown"),
        (
            "going down, critical all the same",
            edited(|n| n.shutting_down = true),
            of_priority(2_000_000_000),
            "NodeShutdown",
        ),
    ];
    for (what, node, pod, expected) in table {
        assert_eq!(on(&node, &pod, &[]), expected, "{what}");
    }
}

#[test]
fn earlier_handlers_speak_first() {
    let facts = edited(|n| {
        n.pressures = vec![Pressure::Disk];
        n.shutting_down = true;
    });
    assert_eq!(on(&facts, &sets("vm.x", |_| ()), &[]), "Evicted");
    let facts = edited(|n| n.shutting_down = true);
    assert_eq!(on(&facts, &sets("vm.x", |s| s.os = Some(PodOS { name: "windows".into() })), &[]), "SysctlForbidden");
}

#[test]
fn facts_come_from_the_node_object() {
    let condition =
        |kind: &str, status: &str| NodeCondition { type_: kind.into(), status: status.into(), ..Default::default() };
    let taint = Taint { key: "k".into(), effect: "NoExecute".into(), ..Default::default() };
    let mut object = Node {
        spec: Some(NodeSpec { taints: Some(vec![taint.clone()]), ..Default::default() }),
        status: Some(NodeStatus {
            allocatable: Some([(CPU.to_owned(), Api("1500m".into()))].into()),
            conditions: Some(vec![
                condition("PIDPressure", "True"),
                condition("MemoryPressure", "True"),
                condition("DiskPressure", "False"),
                condition("Ready", "True"),
            ]),
            features: Some(NodeFeatures { supplemental_groups_policy: Some(true) }),
            declared_features: Some(vec!["A".into()]),
            node_info: Some(model::core::NodeSystemInfo { kernel_version: "4.14.0-1".into(), ..Default::default() }),
            ..Default::default()
        }),
        ..Default::default()
    };
    object.metadata.name = Some("node-a".into());
    object.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    let facts = NodeFacts::from_node(&object);
    let expected = NodeFacts {
        name: "node-a".into(),
        labels: [("a".to_owned(), "b".to_owned())].into(),
        taints: vec![taint],
        allocatable: [(CPU.to_owned(), Quantity::from_millis(1500))].into(),
        pressures: vec![Pressure::Memory, Pressure::Pid],
        kernel: Some((4, 14)),
        supplemental_groups_policy: true,
        declared_features: Some(vec!["A".into()]),
        ..NodeFacts::default()
    };
    assert_eq!(facts, expected);
}
