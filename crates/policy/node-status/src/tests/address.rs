use super::*;
use crate::address::{HostAddresses, choose};

#[test]
fn one_row_per_source_of_addresses() {
    let host = |resolved: &[&str], route: &[&str]| HostAddresses {
        interfaces: ["10.0.0.1", "fd00::1", "10.0.0.9"].map(ip).into(),
        resolved: resolved.iter().map(|s| ip(s)).collect(),
        default_route: route.iter().map(|s| ip(s)).collect(),
    };
    type Row<'a> = (&'a str, &'a [&'a str], &'a str, HostAddresses, Result<&'a [&'a str], &'a str>);
    let table: Vec<Row> = vec![
        ("given", &["10.0.0.9"], "n1", host(&["10.0.0.1"], &[]), Ok(&["10.0.0.9"])),
        ("two given, in order", &["fd00::1", "10.0.0.1"], "n1", host(&[], &[]), Ok(&["fd00::1", "10.0.0.1"])),
        (
            "given, but not ours",
            &["192.0.2.1"],
            "n1",
            host(&[], &["10.0.0.1"]),
            Err("failed to validate nodeIP: node IP: \"192.0.2.1\" not found in the host's network interfaces"),
        ),
        (
            "the second is not ours",
            &["10.0.0.1", "fd00::2"],
            "n1",
            host(&[], &[]),
            Err("failed to validate secondaryNodeIP: node IP: \"fd00::2\" not found in the host's network interfaces"),
        ),
        (
            "loopback",
            &["127.0.0.1"],
            "n1",
            host(&[], &[]),
            Err("failed to validate nodeIP: nodeIP can't be loopback address"),
        ),
        (
            "link-local",
            &["169.254.1.1"],
            "n1",
            host(&[], &[]),
            Err("failed to validate nodeIP: nodeIP can't be a link-local unicast address"),
        ),
        ("the name is one", &[], "10.0.0.7", host(&["10.0.0.1"], &[]), Ok(&["10.0.0.7"])),
        ("resolved, v4 first", &[], "n1", host(&["fd00::1", "10.0.0.1"], &["10.0.0.9"]), Ok(&["10.0.0.1"])),
        ("resolved, v6 wanted", &["::"], "n1", host(&["10.0.0.1", "fd00::1"], &[]), Ok(&["fd00::1"])),
        ("resolved to another machine", &[], "n1", host(&["192.0.2.1"], &["10.0.0.9"]), Ok(&["10.0.0.9"])),
        ("resolved to loopback", &[], "n1", host(&["127.0.1.1"], &["10.0.0.9"]), Ok(&["10.0.0.9"])),
        ("default route of the wanted family", &["::"], "n1", host(&[], &["10.0.0.9", "fd00::1"]), Ok(&["fd00::1"])),
        ("only v6 there", &[], "n1", host(&[], &["fd00::1"]), Ok(&["fd00::1"])),
    ];
    for (what, given, name, host, expected) in table {
        let given: Vec<_> = given.iter().map(|s| ip(s)).collect();
        let expected = expected.map(|all| all.iter().map(|s| ip(s)).collect::<Vec<_>>()).map_err(str::to_owned);
        assert_eq!(choose(&given, name, &host), expected, "{what}");
    }
    let nothing = choose(&[], "n1", &host(&[], &[])).unwrap_err();
    assert!(nothing.starts_with("can't get ip address of node n1. error: "), "{nothing}");
}
