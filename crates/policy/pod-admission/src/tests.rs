use super::*;
use model::core::{Container, ContainerPort, PodOS, PodSecurityContext, PodSpec, ResourceRequirements, Sysctl};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as Api;

fn pod(edit: impl FnOnce(&mut Pod)) -> Pod {
    let mut p = Pod {
        spec: Some(PodSpec { containers: vec![Container::default()], ..Default::default() }),
        ..Default::default()
    };
    edit(&mut p);
    p
}

fn spec(p: &mut Pod) -> &mut PodSpec {
    p.spec.as_mut().unwrap()
}

fn asks(cpu: &str, memory: &str) -> Pod {
    pod(|p| {
        let requests = [(CPU.to_owned(), Api(cpu.into())), (MEMORY.to_owned(), Api(memory.into()))].into();
        spec(p).containers[0].resources = Some(ResourceRequirements { requests: Some(requests), ..Default::default() });
    })
}

fn binds(port: i32, protocol: &str, ip: Option<&str>) -> Pod {
    pod(|p| {
        let port = ContainerPort {
            host_port: Some(port),
            protocol: Some(protocol.into()),
            host_ip: ip.map(Into::into),
            ..Default::default()
        };
        spec(p).containers[0].ports = Some(vec![port]);
    })
}

fn sets(name: &str, edit: impl FnOnce(&mut PodSpec)) -> Pod {
    pod(|p| {
        let sysctls = vec![Sysctl { name: name.into(), value: "1".into() }];
        spec(p).security_context = Some(PodSecurityContext { sysctls: Some(sysctls), ..Default::default() });
        edit(spec(p));
    })
}

fn node() -> NodeFacts {
    let amount = |s: &str| s.parse::<Quantity>().unwrap();
    NodeFacts {
        allocatable: [
            (CPU.to_owned(), amount("2")),
            (MEMORY.to_owned(), amount("1Gi")),
            ("pods".to_owned(), amount("3")),
        ]
        .into(),
        labels: [("disk".to_owned(), "ssd".to_owned())].into(),
        unsafe_sysctls: vec!["kernel.msg*".into(), "net.core.somaxconn".into()],
    }
}

fn reason(pod: &Pod, active: &[Pod]) -> String {
    match admit(pod, active.iter(), &node()) {
        Ok(()) => "admitted".to_owned(),
        Err(r) => r.reason,
    }
}

#[test]
fn one_row_per_rule() {
    let full = vec![pod(|_| ()), pod(|_| ()), pod(|_| ())];
    let table: Vec<(&str, Pod, Vec<Pod>, &str)> = vec![
        ("an empty node takes a plain pod", pod(|_| ()), vec![], "admitted"),
        ("no room for one more pod", pod(|_| ()), full, "OutOfpods"),
        ("exactly the cpu that is left", asks("500m", "0"), vec![asks("1500m", "0")], "admitted"),
        ("more cpu than is left", asks("501m", "0"), vec![asks("1500m", "0")], "OutOfcpu"),
        ("more memory than there is", asks("0", "2Gi"), vec![], "OutOfmemory"),
        ("cpu is told before memory", asks("3", "2Gi"), vec![], "OutOfcpu"),
        ("zero is never too much", asks("0", "0"), vec![asks("2", "1Gi")], "admitted"),
        ("host port taken", binds(80, "TCP", None), vec![binds(80, "TCP", Some("10.0.0.1"))], "NodePorts"),
        ("same port, other protocol", binds(80, "TCP", None), vec![binds(80, "UDP", None)], "admitted"),
        (
            "same port, other address",
            binds(80, "TCP", Some("10.0.0.1")),
            vec![binds(80, "TCP", Some("10.0.0.2"))],
            "admitted",
        ),
        (
            "node selector fits",
            pod(|p| spec(p).node_selector = Some([("disk".into(), "ssd".into())].into())),
            vec![],
            "admitted",
        ),
        (
            "node selector does not fit",
            pod(|p| spec(p).node_selector = Some([("disk".into(), "hdd".into())].into())),
            vec![],
            "NodeAffinity",
        ),
        (
            "another operating system",
            pod(|p| spec(p).os = Some(PodOS { name: "windows".into() })),
            vec![],
            "PodOSNotSupported",
        ),
        (
            "a label for another operating system",
            pod(|p| p.metadata.labels = Some([("kubernetes.io/os".into(), "windows".into())].into())),
            vec![],
            "PodOSSelectorNodeLabelDoesNotMatch",
        ),
        ("safe sysctl", sets("net.ipv4.tcp_syncookies", |_| ()), vec![], "admitted"),
        ("safe sysctl with slashes", sets("net/ipv4/tcp_syncookies", |_| ()), vec![], "admitted"),
        ("unknown sysctl", sets("vm.swappiness", |_| ()), vec![], "SysctlForbidden"),
        ("sysctl allowed by prefix", sets("kernel.msgmax", |_| ()), vec![], "admitted"),
        ("sysctl allowed by name", sets("net.core.somaxconn", |_| ()), vec![], "admitted"),
        (
            "net sysctl on the host's network",
            sets("net.ipv4.tcp_syncookies", |s| s.host_network = Some(true)),
            vec![],
            "SysctlForbidden",
        ),
        (
            "ipc sysctl in the host's ipc",
            sets("kernel.shm_rmid_forced", |s| s.host_ipc = Some(true)),
            vec![],
            "SysctlForbidden",
        ),
    ];
    for (what, pod, active, expected) in table {
        assert_eq!(reason(&pod, &active), expected, "{what}");
    }
}

#[test]
fn the_message_names_the_numbers() {
    let r = admit(&asks("3", "0"), [asks("500m", "0")].iter(), &node()).unwrap_err();
    assert_eq!(r.message, "Node didn't have enough resource: cpu, requested: 3000, used: 500, capacity: 2000");
}
