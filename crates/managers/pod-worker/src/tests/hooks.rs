//! Lifecycle hooks over HTTP.

use super::*;
use ports::hook::HookRequest;

fn with_post_start(get: Value) -> Pod {
    pod(json!({ "lifecycle": { "postStart": { "httpGet": get } } }), json!({}))
}

fn header<'a>(request: &'a HookRequest, name: &str) -> Option<&'a str> {
    request.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

#[test]
fn a_hook_sends_the_headers_of_a_kubelet_unless_its_own_are_given() {
    let given = json!([{ "name": "accept", "value": "text/plain" }, { "name": "user-agent", "value": "mine" }]);
    for (seed, headers, agent, accept) in
        [(1, json!([]), "kube-lifecycle/1.36", "*/*"), (2, given, "mine", "text/plain")]
    {
        run(seed, move |kernel| async move {
            let bench = Bench::start(&kernel, nothing());
            let get = json!({ "path": "/up", "port": 80, "httpHeaders": headers });
            bench.tell(&with_post_start(get), UpdateKind::Create).await;
            let hooks = bench.net.hooks();
            assert_eq!(hooks.len(), 1);
            assert_eq!(header(&hooks[0], "User-Agent"), Some(agent));
            assert_eq!(header(&hooks[0], "Accept"), Some(accept));
            assert_eq!(hooks[0].headers.len(), 2, "each header once");
        });
    }
}

#[test]
fn a_hook_over_https_that_gets_an_http_answer_goes_over_http_without_credentials() {
    for (seed, host, shown) in [(3, "192.0.2.9", "192.0.2.9"), (15, "fd00::1", "[fd00::1]")] {
        run(seed, move |kernel| async move {
            let bench = Bench::start(&kernel, nothing());
            let headers = json!([{ "name": "Authorization", "value": "Bearer t" }, { "name": "X", "value": "1" }]);
            let get = json!({ "scheme": "HTTPS", "path": "/up", "port": 8443, "host": host, "httpHeaders": headers });
            bench.tell(&with_post_start(get), UpdateKind::Create).await;
            let hooks = bench.net.hooks();
            let names = |r: &HookRequest| r.headers.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>().join(" ");
            let asked: Vec<String> = hooks.iter().map(|r| format!("{} {}", r.scheme, names(r))).collect();
            assert_eq!(asked, ["https Authorization X User-Agent Accept", "http X User-Agent Accept"]);
            assert_eq!(header(&hooks[0], "Authorization"), Some("Bearer t"));
            assert_eq!(header(&hooks[1], "User-Agent"), Some("kube-lifecycle/1.36"));
            let text =
                format!("request to HTTPS lifecycle hook {shown}:8443 got HTTP response, retry with HTTP succeeded");
            assert_eq!(bench.events("LifecycleHTTPFallback"), [text]);
            assert!(bench.events("FailedPostStartHook").is_empty());
            assert_eq!(bench.last_status().phase.as_deref(), Some("Running"));
        });
    }
}
