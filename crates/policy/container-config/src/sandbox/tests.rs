use serde_json::{Value, json};

use super::*;
use crate::fixture;
use crate::hostname::HostNameError;

fn made(spec: Value, attempt: u32) -> Result<PodSandboxConfig, ConfigError> {
    sandbox_config(&SandboxInput {
        pod: &fixture::pod(spec),
        node: &fixture::node(),
        attempt,
        dns: DnsConfig { servers: vec!["1.1.1.1".to_owned()], ..Default::default() },
        cgroup_parent: "/kubepods/podu-1".to_owned(),
        resources: Some(LinuxContainerResources { cpu_shares: 2, ..Default::default() }),
        overhead: None,
        userns: None,
        volume_groups: &[],
    })
}

#[test]
fn a_sandbox_says_who_it_is() {
    let got = made(json!({}), 3).expect("a config");
    let id = got.metadata.expect("metadata");
    assert_eq!((id.name.as_str(), id.namespace.as_str(), id.uid.as_str(), id.attempt), ("web", "ns", "u-1", 3));
    assert_eq!((got.hostname.as_str(), got.log_directory.as_str()), ("web", "/var/log/pods/ns_web_u-1"));
    assert_eq!(got.dns_config.expect("dns").servers, ["1.1.1.1"]);
    let linux = got.linux.expect("linux");
    assert_eq!(linux.cgroup_parent, "/kubepods/podu-1");
    assert_eq!(linux.resources.map(|r| r.cpu_shares), Some(2));
    assert_eq!(linux.overhead, Some(LinuxContainerResources::default()), "sent although there is none");
}

#[test]
fn sysctls_are_written_with_dots() {
    let rows = [
        ("net.ipv4.tcp_syncookies", "net.ipv4.tcp_syncookies"),
        ("net/ipv4/tcp_syncookies", "net.ipv4.tcp_syncookies"),
        ("net/ipv4/conf/eno2.100/rp_filter", "net.ipv4.conf.eno2/100.rp_filter"),
        ("net.ipv4.conf.eno2/100.rp_filter", "net.ipv4.conf.eno2/100.rp_filter"),
        ("plain", "plain"),
    ];
    for (name, want) in rows {
        let got = made(json!({"securityContext": {"sysctls": [{"name": name, "value": "1"}]}}), 0).expect(name);
        let sysctls = got.linux.expect("linux").sysctls;
        assert_eq!(sysctls, BTreeMap::from([(want.to_owned(), "1".to_owned())]), "{name}");
    }
}

#[test]
fn a_host_name_that_cannot_be_made_stops_the_sandbox() {
    let error = made(json!({"hostname": "Bad"}), 0).expect_err("no name");
    assert_eq!(error, ConfigError::HostName(HostNameError::HostName("Bad".to_owned())));
}
