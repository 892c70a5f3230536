use serde_json::{Value, json};

use super::*;
use crate::fixture;
use crate::hostname::host_name;

const HEAD: &str = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n\
fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";

fn file(spec: Value, ips: &[&str], node_hosts: &str) -> String {
    let pod = fixture::pod(spec);
    let pod_ips: Vec<_> = ips.iter().map(|ip| ip.parse().expect("ip")).collect();
    let host_name = &host_name(&pod, "cluster.local").expect("a name");
    etc_hosts(&HostsInput { pod: &pod, pod_ips: &pod_ips, host_name, node_hosts })
}

#[test]
fn the_file_follows_the_book_byte_by_byte() {
    let aliases = json!([{"ip": "1.2.3.4", "hostnames": ["a", "b"]}, {"ip": "5.6.7.8", "hostnames": ["c"]}]);
    let alias_text = "\n# Entries added by HostAliases.\n1.2.3.4\ta\tb\n5.6.7.8\tc\n";
    let rows = [
        ("one address", file(json!({}), &["10.1.0.5"], ""), format!("{HEAD}10.1.0.5\tweb\n")),
        ("two families", file(json!({}), &["10.1.0.5", "fd00::5"], ""), format!("{HEAD}10.1.0.5\tweb\nfd00::5\tweb\n")),
        (
            "domain",
            file(json!({"subdomain": "s"}), &["10.1.0.5"], ""),
            format!("{HEAD}10.1.0.5\tweb.s.ns.svc.cluster.local\tweb\n"),
        ),
        (
            "aliases",
            file(json!({"hostAliases": aliases}), &["10.1.0.5"], ""),
            format!("{HEAD}10.1.0.5\tweb\n{alias_text}"),
        ),
        (
            "host network",
            file(json!({"hostNetwork": true}), &["10.0.0.1"], "1.1.1.1 node\n"),
            "# Kubernetes-managed hosts file (host network).\n1.1.1.1 node\n".to_owned(),
        ),
        (
            "host network with aliases",
            file(json!({"hostNetwork": true, "hostAliases": aliases}), &[], "1.1.1.1 node\n"),
            format!("# Kubernetes-managed hosts file (host network).\n1.1.1.1 node\n{alias_text}"),
        ),
    ];
    for (row, got, want) in rows {
        assert_eq!(got, want, "{row}");
    }
}

#[test]
fn a_new_sandbox_address_changes_the_file() {
    assert_ne!(file(json!({}), &["10.1.0.5"], ""), file(json!({}), &["10.1.0.6"], ""));
}
