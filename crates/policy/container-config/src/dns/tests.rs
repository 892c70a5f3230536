use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fixture;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn config(servers: &str, searches: &str, options: &str) -> DnsConfig {
    DnsConfig { servers: words(servers), searches: words(searches), options: words(options) }
}

fn host_file() -> DnsSource {
    let text =
        "nameserver 9.9.9.9\nnameserver 8.8.8.8\nsearch corp.example ns.svc.cluster.local\noptions edns0 ndots:2\n";
    DnsSource::File(ResolvConf::parse(text).expect("a file"))
}

fn made(spec: Value, cluster_dns: &str, domain: &str, source: &DnsSource) -> (DnsConfig, Vec<DnsWarning>) {
    let pod = fixture::pod(spec);
    dns_config(&DnsInput { pod: &pod, cluster_domain: domain, cluster_dns: &words(cluster_dns), source })
}

#[test]
fn the_policy_decides_the_base() {
    let cluster = config("10.96.0.10", "ns.svc.cluster.local svc.cluster.local cluster.local corp.example", "ndots:5");
    let host = config("9.9.9.9 8.8.8.8", "corp.example ns.svc.cluster.local", "edns0 ndots:2");
    let rows = [
        ("None", json!({"dnsPolicy": "None"}), DnsConfig::default()),
        ("Default", json!({"dnsPolicy": "Default"}), host.clone()),
        ("ClusterFirst", json!({"dnsPolicy": "ClusterFirst"}), cluster.clone()),
        ("no policy", json!({}), cluster.clone()),
        ("unknown policy", json!({"dnsPolicy": "Odd", "hostNetwork": true}), cluster.clone()),
        ("ClusterFirst on the host's network", json!({"dnsPolicy": "ClusterFirst", "hostNetwork": true}), host.clone()),
        ("WithHostNet", json!({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": true}), cluster.clone()),
        ("WithHostNet elsewhere", json!({"dnsPolicy": "ClusterFirstWithHostNet"}), cluster),
    ];
    for (row, spec, want) in rows {
        assert_eq!(made(spec, "10.96.0.10", "cluster.local", &host_file()), (want, vec![]), "{row}");
    }
}

#[test]
fn without_a_cluster_domain_only_the_hosts_searches_are_left() {
    let (got, _) = made(json!({}), "10.96.0.10", "", &host_file());
    assert_eq!(got, config("10.96.0.10", "corp.example ns.svc.cluster.local", "ndots:5"));
}

#[test]
fn cluster_policy_without_cluster_dns_falls_back_with_a_warning() {
    let host = config("9.9.9.9 8.8.8.8", "corp.example ns.svc.cluster.local", "edns0 ndots:2");
    let rows = [
        ("pod network", json!({}), vec![DnsWarning::MissingClusterDns]),
        (
            "WithHostNet",
            json!({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": true}),
            vec![DnsWarning::MissingClusterDns],
        ),
        ("host network needs none", json!({"hostNetwork": true}), vec![]),
    ];
    for (row, spec, warnings) in rows {
        assert_eq!(made(spec, "", "cluster.local", &host_file()), (host.clone(), warnings), "{row}");
    }
    let warning = DnsWarning::MissingClusterDns;
    assert_eq!(warning.reason(), "MissingClusterDNS");
    assert!(warning.message(&fixture::pod(json!({}))).starts_with("pod: \"web_ns(u-1)\". kubelet does not have"));
}

#[test]
fn without_a_resolver_file_default_means_loopback() {
    let ips = |ips: &str| DnsSource::Disabled { node_ips: words(ips).iter().map(|i| i.parse().expect("ip")).collect() };
    let rows = [
        ("unknown address", ips(""), config("127.0.0.1", ".", "")),
        ("IPv4", ips("10.0.0.1"), config("127.0.0.1", ".", "")),
        ("IPv6 first", ips("fd00::1 10.0.0.1"), config("::1 127.0.0.1", ".", "")),
    ];
    for (row, source, want) in rows {
        assert_eq!(made(json!({"dnsPolicy": "Default"}), "10.96.0.10", "c", &source).0, want, "{row}");
    }
    let (cluster, _) = made(json!({}), "10.96.0.10", "c", &ips(""));
    assert_eq!(cluster, config("10.96.0.10", "ns.svc.c svc.c c", "ndots:5"), "cluster policy is not touched");
}

#[test]
fn the_pods_own_config_is_merged_at_the_end() {
    let own = json!({"nameservers": ["1.1.1.1", "10.96.0.10"], "searches": ["corp.example", "x.y"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "rotate"}, {"name": "timeout", "value": ""}]});
    let rows = [
        (
            "None: only its values",
            json!({"dnsPolicy": "None", "dnsConfig": own}),
            config("1.1.1.1 10.96.0.10", "corp.example x.y", "ndots:2 rotate timeout"),
        ),
        (
            "appended, without repeats, options by name",
            json!({"dnsConfig": own}),
            config(
                "10.96.0.10 1.1.1.1",
                "ns.svc.cluster.local svc.cluster.local cluster.local corp.example x.y",
                "ndots:2 rotate timeout",
            ),
        ),
        (
            "an option of the host",
            json!({"dnsPolicy": "Default", "dnsConfig": {"options": [{"name": "edns0", "value": "1"}]}}),
            config("9.9.9.9 8.8.8.8", "corp.example ns.svc.cluster.local", "edns0:1 ndots:2"),
        ),
    ];
    for (row, spec, want) in rows {
        assert_eq!(made(spec, "10.96.0.10", "cluster.local", &host_file()), (want, vec![]), "{row}");
    }
}

#[test]
fn limits_cut_and_tell_what_is_left() {
    let none = |extra: Value| json!({"dnsPolicy": "None", "dnsConfig": extra});
    let many: Vec<_> = (0..33).map(|i| format!("d{i}")).collect();
    let long = "x".repeat(254);
    let wide: Vec<_> = (0..10).map(|i| format!("{i}{}", "y".repeat(249))).collect();
    let empty = DnsSource::Disabled { node_ips: vec![] };
    let get = |spec| made(spec, "", "", &empty);

    let (got, warned) = get(none(json!({"nameservers": ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"]})));
    assert_eq!(got.servers, words("1.1.1.1 2.2.2.2 3.3.3.3"));
    assert_eq!(warned, [DnsWarning::Nameservers { applied: "1.1.1.1 2.2.2.2 3.3.3.3".to_owned() }]);
    assert_eq!(warned[0].reason(), "DNSConfigForming");
    assert!(
        warned[0]
            .message(&fixture::pod(json!({})))
            .ends_with("the applied nameserver line is: 1.1.1.1 2.2.2.2 3.3.3.3")
    );

    let (got, warned) = get(none(json!({"searches": many})));
    assert_eq!(got.searches, many[..32]);
    assert_eq!(warned, [DnsWarning::Searches { applied: many[..32].join(" ") }]);

    let (got, warned) = get(none(json!({"searches": ["a", long, "b"]})));
    assert_eq!(got.searches, words("a b"), "an entry over 253 bytes goes, the rest stays");
    assert_eq!(warned.len(), 1);

    let (got, warned) = get(none(json!({"searches": wide})));
    assert_eq!(got.searches, wide[..8], "8 x 250 + 7 spaces fit in 2048 bytes, 9 do not");
    assert_eq!(warned.len(), 1);

    let (got, warned) = get(none(json!({"searches": many[..32]})));
    assert_eq!((got.searches.len(), warned), (32, vec![]), "exactly the limit is fine");
}

#[test]
fn thirty_host_searches_and_three_of_the_cluster_are_one_too_many() {
    let searches: Vec<_> = (0..30).map(|i| format!("d{i}")).collect();
    let source = DnsSource::File(ResolvConf { searches: searches.clone(), ..Default::default() });
    let (got, warned) = made(json!({}), "10.96.0.10", "c", &source);
    assert_eq!(got.searches.len(), 32);
    assert_eq!(got.searches[3..], searches[..29]);
    assert_eq!(warned.len(), 1);
}

#[test]
fn a_resolver_file_is_read_line_by_line() {
    let conf = |n: &str, s: &str, o: &str| ResolvConf { nameservers: words(n), searches: words(s), options: words(o) };
    let rows = [
        ("empty", "", conf("", "", "")),
        ("comments and blanks", "# c\n\n   \n;x\n  # d\n", conf("", "", "")),
        ("servers add up", "nameserver 1.1.1.1\n  nameserver\t2.2.2.2 extra\n", conf("1.1.1.1 2.2.2.2", "", "")),
        ("last search wins", "search a b\nsearch c\n", conf("", "c", "")),
        ("an empty search clears", "search a\nsearch\n", conf("", "", "")),
        ("trailing dots", "search a. . b.c.\n", conf("", "a b.c", "")),
        (
            "options add up, later of a name wins",
            "options ndots:5 rotate\noptions ndots:2 edns0\n",
            conf("", "", "ndots:2 rotate edns0"),
        ),
        ("unknown words", "domain x\nsortlist y\nnameservers 3\n", conf("", "", "")),
        ("no newline at the end", "nameserver 1.1.1.1", conf("1.1.1.1", "", "")),
        ("CRLF", "nameserver 1.1.1.1\r\nsearch a\r\n", conf("1.1.1.1", "a", "")),
    ];
    for (row, text, want) in rows {
        assert_eq!(ResolvConf::parse(text), Ok(want), "{row}");
    }
    assert_eq!(ResolvConf::parse("# x\nnameserver \n"), Err(ResolvConfError::NoAddress { line: 2 }));
}

#[test]
fn the_hosts_file_is_checked_once_for_what_would_not_fit() {
    let with = |searches: Vec<String>| ResolvConf { searches, ..Default::default() };
    let many = |n: usize| with((0..n).map(|i| format!("d{i}")).collect());
    let rows = [
        ("fits", many(29), "c", None),
        ("three are the cluster's", many(30), "c", Some("more than 29 domains!")),
        ("no cluster domain", many(32), "", None),
        ("33", many(33), "", Some("more than 32 domains!")),
        ("long entry", with(vec!["x".repeat(254)]), "c", Some("more than allowed 253 chars!")),
        ("long line", with((0..9).map(|_| "y".repeat(250)).collect()), "c", Some("more than allowed 2048 chars!")),
    ];
    for (row, conf, domain, want) in rows {
        let got = limits_problem("/etc/resolv.conf", &conf, domain);
        assert_eq!(got.is_some(), want.is_some(), "{row}");
        assert!(got.unwrap_or_default().ends_with(want.unwrap_or_default()), "{row}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        if let Ok(conf) = ResolvConf::parse(&text) {
            for item in conf.nameservers.iter().chain(&conf.searches).chain(&conf.options) {
                prop_assert!(!item.is_empty() && !item.contains(char::is_whitespace));
            }
        }
    }

    #[test]
    fn what_was_read_is_read_again(
        servers in proptest::collection::vec("[0-9a-f.:]{1,12}", 0..5),
        searches in proptest::collection::vec("[a-z]{1,5}(\\.[a-z]{1,5}){0,2}", 0..5),
        options in proptest::collection::btree_map("[a-z]{1,5}", "[0-9]{1,2}", 0..4),
    ) {
        let options: Vec<_> = options.iter().map(|(k, v)| format!("{k}:{v}")).collect();
        let mut text = String::new();
        for s in &servers { text.push_str(&format!("nameserver {s}\n")); }
        text.push_str(&format!("search {}\noptions {}\n", searches.join(" "), options.join(" ")));
        prop_assert_eq!(ResolvConf::parse(&text), Ok(ResolvConf { nameservers: servers, searches, options }));
    }

    #[test]
    fn results_never_pass_the_limits(
        servers in proptest::collection::vec("[0-9]{1,3}", 0..8),
        searches in proptest::collection::vec("[a-z]{1,300}", 0..50),
    ) {
        let (got, warned) = made(
            json!({"dnsPolicy": "None", "dnsConfig": {"nameservers": servers, "searches": searches}}), "", "",
            &DnsSource::Disabled { node_ips: vec![] },
        );
        prop_assert!(got.servers.len() <= MAX_SERVERS && got.searches.len() <= MAX_SEARCHES);
        prop_assert!(got.searches.join(" ").len() <= MAX_SEARCH_LINE);
        prop_assert!(got.searches.iter().all(|s| s.len() <= MAX_SEARCH_LEN));
        prop_assert!(warned.len() <= 2);
    }
}
