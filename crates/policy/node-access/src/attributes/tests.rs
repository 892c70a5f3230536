use super::*;
use crate::canonical;

fn of(method: &str, path: &str, rules: Rules) -> (&'static str, Vec<&'static str>) {
    let attributes = Attributes::of(method, &canonical(path).unwrap().first, rules);
    (attributes.verb, attributes.subresources.to_vec())
}

/// One row for each row of interfaces 3.4: method, path, verb, sub-resources, those with the gate off.
const TABLE: &[(&str, &str, &str, &[&str], &str)] = &[
    ("GET", "/healthz", "get", &["healthz", "proxy"], "proxy"),
    ("GET", "/healthz/ping", "get", &["healthz", "proxy"], "proxy"),
    ("GET", "/healthz/log", "get", &["healthz", "proxy"], "proxy"),
    ("GET", "/healthz/syncloop", "get", &["healthz", "proxy"], "proxy"),
    ("GET", "/healthz/device-plugin", "get", &["healthz", "proxy"], "proxy"),
    ("GET", "/pods", "get", &["pods", "proxy"], "proxy"),
    ("GET", "/pods/", "get", &["pods", "proxy"], "proxy"),
    ("GET", "/runningpods/", "get", &["pods", "proxy"], "proxy"),
    ("GET", "/runningpods", "get", &["pods", "proxy"], "proxy"),
    ("GET", "/stats/summary", "get", &["stats"], "stats"),
    ("POST", "/stats/summary", "create", &["stats"], "stats"),
    ("GET", "/stats/container", "get", &["stats"], "stats"),
    ("GET", "/spec", "get", &["proxy"], "proxy"),
    ("GET", "/spec/", "get", &["proxy"], "proxy"),
    ("GET", "/metrics", "get", &["metrics"], "metrics"),
    ("GET", "/metrics/", "get", &["metrics"], "metrics"),
    ("GET", "/metrics/cadvisor", "get", &["metrics"], "metrics"),
    ("GET", "/metrics/resource", "get", &["metrics"], "metrics"),
    ("GET", "/metrics/probes", "get", &["metrics"], "metrics"),
    ("GET", "/metrics/slis", "get", &["metrics"], "metrics"),
    ("DELETE", "/metrics/slis", "delete", &["metrics"], "metrics"),
    ("GET", "/configz", "get", &["configz", "proxy"], "proxy"),
    ("GET", "/containerLogs/ns/pod/c", "get", &["proxy"], "proxy"),
    ("POST", "/run/ns/pod/c", "create", &["proxy"], "proxy"),
    ("POST", "/run/ns/pod/uid/c", "create", &["proxy"], "proxy"),
    ("GET", "/exec/ns/pod/c", "get", &["proxy"], "proxy"),
    ("POST", "/exec/ns/pod/c", "create", &["proxy"], "proxy"),
    ("POST", "/exec/ns/pod/uid/c", "create", &["proxy"], "proxy"),
    ("POST", "/attach/ns/pod/c", "create", &["proxy"], "proxy"),
    ("POST", "/portForward/ns/pod", "create", &["proxy"], "proxy"),
    ("GET", "/logs/", "get", &["log"], "log"),
    ("GET", "/logs/syslog", "get", &["log"], "log"),
    ("GET", "/bosun/why/ns/pod", "get", &["proxy"], "proxy"),
    ("POST", "/checkpoint/ns/pod/c", "create", &["checkpoint"], "checkpoint"),
    ("GET", "/debug/pprof/profile", "get", &["proxy"], "proxy"),
    ("PUT", "/debug/flags/v", "update", &["proxy"], "proxy"),
    ("GET", "/statusz", "get", &["statusz"], "proxy"),
    ("GET", "/flagz", "get", &["configz"], "proxy"),
    ("GET", "/", "get", &["proxy"], "proxy"),
    ("GET", "/nope", "get", &["proxy"], "proxy"),
    // Names that only look like others.
    ("GET", "/metricsx", "get", &["proxy"], "proxy"),
    ("GET", "/Metrics", "get", &["proxy"], "proxy"),
    ("GET", "/stats%20", "get", &["proxy"], "proxy"),
    ("GET", "/pods;a=b", "get", &["proxy"], "proxy"),
    ("GET", "/%6cogs/x", "get", &["log"], "log"),
    ("GET", "/exec/metrics", "get", &["proxy"], "proxy"),
    // Methods.
    ("HEAD", "/metrics", "", &["metrics"], "metrics"),
    ("OPTIONS", "/metrics", "", &["metrics"], "metrics"),
    ("PATCH", "/metrics", "patch", &["metrics"], "metrics"),
    ("get", "/metrics", "", &["metrics"], "metrics"),
    ("BREW", "/metrics", "", &["metrics"], "metrics"),
];

#[test]
fn every_path_of_the_book_has_its_attributes() {
    for (method, path, verb, subresources, legacy) in TABLE {
        assert_eq!(of(method, path, Rules::FineGrained), (*verb, subresources.to_vec()), "{method} {path}");
        assert_eq!(of(method, path, Rules::Legacy), (*verb, vec![*legacy]), "{method} {path} with the gate off");
    }
}

#[test]
fn what_can_run_or_read_in_containers_needs_proxy_and_nothing_less() {
    for first in ["exec", "attach", "portForward", "run", "containerLogs", "debug", "spec", "", "EXEC"] {
        for rules in [Rules::FineGrained, Rules::Legacy] {
            assert_eq!(subresources(first, rules), ["proxy"], "{first}");
        }
    }
}
