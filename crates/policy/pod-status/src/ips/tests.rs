use serde_json::json;

use super::*;
use crate::testing::*;

fn parse(ips: &[&str]) -> Vec<IpAddr> {
    ips.iter().map(|s| s.parse().unwrap()).collect()
}

fn shown(case: &Case) -> Vec<String> {
    let status = case.generate();
    let ips: Vec<String> = status.pod_ips.unwrap_or_default().into_iter().map(|p| p.ip).collect();
    assert_eq!(status.pod_ip.as_ref(), ips.first(), "podIP is the first of podIPs");
    ips
}

#[test]
fn pod_address_rows() {
    let with = |host: &[&str], ips: &[&str]| {
        let mut case = Case::new(app_pod("Always"), Seen::sandbox());
        case.host_ips = parse(host);
        case.seen.ips = parse(ips);
        case
    };
    let had = status(json!({"podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}]}));
    let mut gone = with(&["192.0.2.1"], &[]);
    gone.seen.sandboxes[0].ready = false;
    let rows: Vec<(&str, Case, &[&str])> = vec![
        ("node is IPv4 first", with(&["192.0.2.1"], &["fd00::7", "10.0.0.7"]), &["10.0.0.7", "fd00::7"]),
        ("node is IPv6 first", with(&["2001:db8::1"], &["10.0.0.7", "fd00::7"]), &["fd00::7", "10.0.0.7"]),
        ("one of each family", with(&["192.0.2.1"], &["10.0.0.7", "10.0.0.8", "fd00::7"]), &["10.0.0.7", "fd00::7"]),
        ("address is printed canonically", with(&["192.0.2.1"], &["fd00:0:0::7"]), &["fd00::7"]),
        ("no node address known: IPv4 first", with(&[], &["fd00::7", "10.0.0.7"]), &["10.0.0.7", "fd00::7"]),
        ("edge 88: sandbox gone, address stays", gone.clone().base(had.clone()), &["10.0.0.9"]),
        ("ready sandbox without address: none", with(&["192.0.2.1"], &[]).base(had), &[]),
        ("nothing known at all", gone, &[]),
    ];
    for (name, case, expected) in rows {
        assert_eq!(shown(&case), expected, "{name}");
    }
}

#[test]
fn host_network_pods_have_the_host_addresses() {
    let p = pod(json!({"hostNetwork": true, "containers": [{"name": "app"}]}));
    let mut case = Case::new(p, Seen::nothing());
    assert_eq!(shown(&case), ["192.0.2.1"]);
    case.host_ips = parse(&["192.0.2.1", "2001:db8::1"]);
    assert_eq!(shown(&case), ["192.0.2.1", "2001:db8::1"]);
    // A changed node address of the same family does not move a pod that has one; a second family is added.
    let had = status(json!({"podIP": "192.0.2.9", "podIPs": [{"ip": "192.0.2.9"}]}));
    assert_eq!(shown(&case.base(had)), ["192.0.2.9", "2001:db8::1"]);
}

#[test]
fn host_addresses_are_at_most_two_and_kept_while_unknown() {
    let mut case = Case::new(app_pod("Always"), Seen::nothing());
    case.host_ips = parse(&["192.0.2.1", "2001:db8::1", "192.0.2.2"]);
    let known = case.generate();
    assert_eq!(known.host_ip.as_deref(), Some("192.0.2.1"));
    assert_eq!(known.host_ips.as_ref().map(Vec::len), Some(2));
    case.host_ips.clear();
    let later = case.base(known.clone()).generate();
    assert_eq!((later.host_ip, later.host_ips), (known.host_ip, known.host_ips));
}
