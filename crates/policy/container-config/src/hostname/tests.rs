use serde_json::{Value, json};

use super::*;
use crate::fixture;

fn named(name: &str, spec: Value) -> Pod {
    let mut pod = fixture::pod(spec);
    pod.metadata.name = Some(name.to_owned());
    pod
}

#[test]
fn name_and_domain_follow_the_book() {
    let long = "a".repeat(70);
    let dashed = format!("{}-{}", "a".repeat(62), "b".repeat(7));
    let dotted = format!("{}-.{}", "a".repeat(61), "b".repeat(7));
    let rows: Vec<(&str, Pod, &str, &str)> = vec![
        ("pod name", named("web", json!({})), "web", ""),
        ("hostname wins", named("web", json!({"hostname": "h"})), "h", ""),
        ("empty hostname is none", named("web", json!({"hostname": ""})), "web", ""),
        ("subdomain", named("web", json!({"subdomain": "sub"})), "web", "sub.ns.svc.cluster.local"),
        ("cut to 63", named(&long, json!({})), &long[..63], ""),
        ("63 stay", named(&long[..63], json!({})), &long[..63], ""),
        ("dash trimmed", named(&dashed, json!({})), &dashed[..62], ""),
        ("dash and dot trimmed", named(&dotted, json!({})), &dotted[..61], ""),
        ("override", named("web", json!({"hostnameOverride": "a.b", "hostname": "h", "subdomain": "s"})), "a.b", ""),
    ];
    for (row, pod, name, domain) in rows {
        let want = HostName { name: name.to_owned(), domain: domain.to_owned() };
        assert_eq!(host_name(&pod, "cluster.local"), Ok(want), "{row}");
    }
}

#[test]
fn names_that_dns_does_not_take_are_refused() {
    use HostNameError as E;
    let rows = [
        ("upper case", json!({"hostname": "Web"}), E::HostName("Web".to_owned())),
        ("dot in a label", json!({"hostname": "a.b"}), E::HostName("a.b".to_owned())),
        ("ends with a dash", json!({"hostname": "a-"}), E::HostName("a-".to_owned())),
        ("64 bytes", json!({"hostname": "a".repeat(64)}), E::HostName("a".repeat(64))),
        ("bad subdomain", json!({"subdomain": "s_"}), E::Subdomain("s_".to_owned())),
        ("bad override", json!({"hostnameOverride": "a..b"}), E::Override("a..b".to_owned())),
    ];
    for (row, spec, want) in rows {
        assert_eq!(host_name(&fixture::pod(spec), "cluster.local"), Err(want), "{row}");
    }
    let dashes = "-".repeat(70);
    let want = E::Empty { pod: dashes.clone(), name: dashes.clone() };
    assert_eq!(host_name(&named(&dashes, json!({})), ""), Err(want), "nothing left");
}

#[test]
fn the_kernel_gets_the_short_name_unless_asked_otherwise() {
    let fqdn = |v: Value| json!({"hostname": "h2", "subdomain": "sub", "setHostnameAsFQDN": v});
    let rows = [
        ("short", json!({"hostname": "h2", "subdomain": "sub"}), "h2"),
        ("switched off", fqdn(json!(false)), "h2"),
        ("whole", fqdn(json!(true)), "h2.sub.ns.svc.cluster.local"),
        ("no domain", json!({"setHostnameAsFQDN": true}), "web"),
        ("host network", json!({"hostNetwork": true, "hostname": "h2"}), ""),
        ("host network, override", json!({"hostNetwork": true, "hostnameOverride": "o"}), "o"),
    ];
    for (row, spec, want) in rows {
        assert_eq!(kernel_host_name(&fixture::pod(spec), "cluster.local").as_deref(), Ok(want), "{row}");
    }
}

#[test]
fn a_whole_name_over_64_characters_is_an_error_not_a_cut() {
    let with = |len: usize| {
        // h + "." + "s.ns.svc.cluster.local" (22 bytes)
        let name = "h".repeat(len - 23);
        kernel_host_name(
            &fixture::pod(json!({"hostname": name, "subdomain": "s", "setHostnameAsFQDN": true})),
            "cluster.local",
        )
    };
    assert_eq!(with(64).map(|n| n.len()), Ok(64));
    let error = with(65).expect_err("too long").to_string();
    assert!(error.ends_with("is too long (64 characters is the max, 65 characters requested)"), "{error}");
}
