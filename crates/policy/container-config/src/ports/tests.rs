use serde_json::json;

use super::*;
use crate::fixture;

fn mapped(ports: serde_json::Value) -> Vec<(Protocol, i32, i32, String)> {
    let pod = fixture::pod(json!({"containers": [{"name": "app", "ports": ports}]}));
    port_mappings(&pod).into_iter().map(|p| (p.protocol(), p.container_port, p.host_port, p.host_ip)).collect()
}

#[test]
fn ports_become_mappings_and_repeats_are_dropped() {
    use Protocol::{Sctp, Tcp, Udp};
    let none = String::new;
    let rows = [
        ("no host port is passed on", json!([{"containerPort": 80}]), vec![(Tcp, 80, 0, none())]),
        (
            "protocols",
            json!([{"containerPort": 1, "protocol": "UDP"}, {"containerPort": 1, "protocol": "SCTP"}, {"containerPort": 1, "protocol": "TCP"}]),
            vec![(Udp, 1, 0, none()), (Sctp, 1, 0, none()), (Tcp, 1, 0, none())],
        ),
        (
            "same name",
            json!([{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}]),
            vec![(Tcp, 1, 0, none())],
        ),
        (
            "same numbers without a name",
            json!([{"containerPort": 1, "hostPort": 2}, {"containerPort": 1, "hostPort": 2}]),
            vec![(Tcp, 1, 2, none())],
        ),
        (
            "another host address",
            json!([{"containerPort": 1, "hostPort": 2, "hostIP": "127.0.0.1"}, {"containerPort": 1, "hostPort": 2, "hostIP": "::1"}]),
            vec![(Tcp, 1, 2, "127.0.0.1".to_owned()), (Tcp, 1, 2, "::1".to_owned())],
        ),
        (
            "same numbers, other names",
            json!([{"name": "a", "containerPort": 1}, {"name": "b", "containerPort": 1}]),
            vec![(Tcp, 1, 0, none()), (Tcp, 1, 0, none())],
        ),
    ];
    for (row, ports, want) in rows {
        assert_eq!(mapped(ports), want, "{row}");
    }
}

#[test]
fn only_regular_containers_have_mappings_and_each_counts_for_itself() {
    let pod = fixture::pod(json!({
        "hostNetwork": true,
        "initContainers": [{"name": "side", "restartPolicy": "Always", "ports": [{"containerPort": 9}]}],
        "containers": [{"name": "a", "ports": [{"containerPort": 1}]}, {"name": "b", "ports": [{"containerPort": 1}]}],
    }));
    let numbers: Vec<_> = port_mappings(&pod).iter().map(|p| p.container_port).collect();
    assert_eq!(numbers, [1, 1]);
}
