mod handlers;
mod preemption;
mod selection;

use super::*;
use model::core::{Container, ContainerPort, PodOS, PodSecurityContext, PodSpec, ResourceRequirements, Sysctl};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as Api;
use model::quantity::Quantity;
use model::resources::{CPU, MEMORY};

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

fn wants(name: &str, amount: &str) -> Pod {
    pod(|p| {
        let requests = [(name.to_owned(), Api(amount.into()))].into();
        spec(p).containers[0].resources = Some(ResourceRequirements { requests: Some(requests), ..Default::default() });
    })
}

fn overhead(cpu: &str) -> Pod {
    pod(|p| spec(p).overhead = Some([(CPU.to_owned(), Api(cpu.into()))].into()))
}

fn pod_level(cpu: &str) -> Pod {
    let mut p = asks("100m", "0");
    let requests = [(CPU.to_owned(), Api(cpu.into()))].into();
    spec(&mut p).resources = Some(ResourceRequirements { requests: Some(requests), ..Default::default() });
    p
}

fn init_asks(cpu: &str) -> Pod {
    let mut p = asks(cpu, "0");
    let init = spec(&mut p).containers.remove(0);
    spec(&mut p).init_containers = Some(vec![init]);
    spec(&mut p).containers = vec![Container::default()];
    p
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
    let of = |(k, v): (&str, &str)| (k.to_owned(), amount(v));
    NodeFacts {
        name: "node-a".into(),
        allocatable: [(CPU, "2"), (MEMORY, "1Gi"), ("pods", "3"), ("ephemeral-storage", "10Gi"), ("acme.com/gpu", "1")]
            .map(of)
            .into(),
        labels: [("disk", "ssd"), ("cores", "8")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        unsafe_sysctls: vec!["kernel.msg*".into(), "net.core.*".into()],
        ..NodeFacts::default()
    }
}

fn on(node: &NodeFacts, pod: &Pod, active: &[Pod]) -> String {
    match admit(pod, active.iter(), node) {
        Ok(()) => "admitted".to_owned(),
        Err(r) => r.reason,
    }
}

fn reason(pod: &Pod, active: &[Pod]) -> String {
    on(&node(), pod, active)
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
        ("exactly the pods that may be", pod(|_| ()), vec![pod(|_| ()), pod(|_| ())], "admitted"),
        ("more disk than there is", wants("ephemeral-storage", "11Gi"), vec![], "OutOfephemeral-storage"),
        ("an extended resource that is there", wants("acme.com/gpu", "1"), vec![], "admitted"),
        ("more of it than there is", wants("acme.com/gpu", "2"), vec![], "OutOfacme.com/gpu"),
        ("taken by another", wants("acme.com/gpu", "1"), vec![wants("acme.com/gpu", "1")], "OutOfacme.com/gpu"),
        ("an extended resource that the node does not know", wants("other.io/x", "5"), vec![], "admitted"),
        ("huge pages that the node lacks", wants("hugepages-2Mi", "2Mi"), vec![], "OutOfhugepages-2Mi"),
        ("overhead counts", overhead("2001m"), vec![], "OutOfcpu"),
        ("pod-level amounts replace the sum", pod_level("3"), vec![], "OutOfcpu"),
        ("what init containers need at most counts", init_asks("3"), vec![], "OutOfcpu"),
        (
            "the host's own address differs from all IPv6",
            binds(80, "TCP", Some("::")),
            vec![binds(80, "TCP", Some("10.0.0.1"))],
            "admitted",
        ),
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
