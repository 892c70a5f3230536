use super::*;

#[test]
fn labels_are_those_of_the_book() {
    let rows = [
        ("GET", "/pods", "GET", "pods", "false"),
        ("GET", "/pods/", "GET", "pods", "false"),
        ("GET", "/metrics", "GET", "metrics", "false"),
        ("GET", "/metrics/cadvisor", "GET", "metrics/cadvisor", "false"),
        ("GET", "/metrics/nope", "GET", "other", "false"),
        ("POST", "/exec/ns/pod/c", "POST", "exec", "true"),
        ("POST", "/attach/ns/pod/c", "POST", "attach", "true"),
        ("GET", "/debug/pprof/profile", "GET", "debug", "true"),
        ("POST", "/portForward/ns/pod", "POST", "portForward", "false"),
        ("GET", "/containerLogs/ns/pod/c", "GET", "containerLogs", "false"),
        ("GET", "/", "GET", "other", "false"),
        ("BREW", "/coffee", "other", "other", "false"),
        ("get", "/Pods", "other", "other", "false"),
    ];
    for (method, path, m, p, long_running) in rows {
        assert_eq!(labels(method, path), Labels { method: m, path: p, long_running }, "{method} {path}");
    }
}
