use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use fakes::api::{Matching, Trouble};
use ports::api::ApiError;
use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use serde_json::json;

use super::bed::{Bed, api, front};
use super::pki::{Authority, Wanted};
use crate::front::{Authz, Front, ServeError, open};

/// What no second try can mend.
fn refusal() -> Trouble {
    Trouble::Fail(ApiError::status(400, "BadRequest", "no"))
}

/// All routes of interfaces 3.2, with their methods.
const ROUTES: &[(&str, &str)] = &[
    ("GET", "/healthz"),
    ("GET", "/healthz/ping"),
    ("GET", "/pods"),
    ("GET", "/pods/"),
    ("GET", "/runningpods/"),
    ("GET", "/stats/summary"),
    ("POST", "/stats/summary"),
    ("GET", "/metrics"),
    ("GET", "/metrics/cadvisor"),
    ("GET", "/metrics/resource"),
    ("GET", "/metrics/probes"),
    ("GET", "/metrics/slis"),
    ("DELETE", "/metrics/slis"),
    ("GET", "/configz"),
    ("GET", "/bosun/why/ns/pod"),
    ("GET", "/bosun/timeline/ns/pod"),
    ("GET", "/containerLogs/ns/pod/c"),
    ("POST", "/run/ns/pod/c"),
    ("GET", "/exec/ns/pod/c"),
    ("POST", "/exec/ns/pod/uid/c"),
    ("POST", "/attach/ns/pod/c"),
    ("POST", "/portForward/ns/pod"),
    ("GET", "/logs/"),
    ("GET", "/logs/syslog"),
    ("POST", "/checkpoint/ns/pod/c"),
    ("GET", "/debug/pprof/profile"),
    ("PUT", "/debug/flags/v"),
    ("GET", "/statusz"),
    ("GET", "/flagz"),
    ("GET", "/nope"),
    ("GET", "/"),
    ("HEAD", "/pods"),
    ("OPTIONS", "/exec/ns/pod/c"),
    ("BREW", "/exec/ns/pod/c"),
];

#[tokio::test]
async fn nothing_is_reachable_without_leave() {
    let bed = Bed::new().await;
    bed.api.allow(&[]);
    let alice = bed.alice();
    for (mut nobody, mut alice) in
        [(bed.h1(None).await, bed.h1(Some(&alice)).await), (bed.h2(None).await, bed.h2(Some(&alice)).await)]
    {
        for (method, path) in ROUTES {
            let answer = nobody.ask(method, path, &[]).await;
            assert_eq!(answer.code, 401, "{method} {path}");
            let answer = alice.ask(method, path, &[]).await;
            assert_eq!(answer.code, 403, "{method} {path}");
        }
    }
    assert_eq!(bed.handled.load(Ordering::SeqCst), 0, "no handler was called");
    let counted = bed.counted();
    assert_eq!((counted.unauthenticated, counted.forbidden), (2 * ROUTES.len() as u64, 2 * ROUTES.len() as u64));
}

#[tokio::test]
async fn each_credential_gets_what_it_deserves() {
    for anonymous in [false, true] {
        let bed = Bed::with(|front| front.authn.anonymous = anonymous, Router::new()).await;
        let bad = (401, "Unauthorized");
        let passed = |body| if anonymous { (200, body) } else { bad };
        let stranger = Authority::new("clients");
        let wanted = |name, usage, years| Wanted { name, usage, years, ..Wanted::default() };
        let good = bed.alice();
        let expired = bed.authority.client(wanted("alice", ClientAuth, (2000, 2001)));
        let early = bed.authority.client(wanted("alice", ClientAuth, (2100, 2120)));
        let server = bed.authority.client(wanted("alice", ServerAuth, (2020, 2120)));
        let nameless = bed.authority.client(wanted("", ClientAuth, (2020, 2120)));
        let foreign = stranger.client(Wanted::default());
        let rows = [
            ("nothing", None, None, passed("system:anonymous /pods")),
            ("a good certificate", Some(&good), None, (200, "alice /pods")),
            ("an expired certificate", Some(&expired), None, bad),
            ("a certificate of the future", Some(&early), None, bad),
            ("a certificate for servers", Some(&server), None, bad),
            ("a certificate without a name", Some(&nameless), None, bad),
            ("a certificate of another authority of the same name", Some(&foreign), None, bad),
            ("a good token", None, Some("Bearer good-bob"), (200, "bob /pods")),
            ("a token of nobody", None, Some("Bearer nope"), bad),
            ("bytes for a token", None, Some("Bearer \u{fc}"), bad),
            ("an empty token", None, Some("Bearer "), passed("system:anonymous /pods authorization=Bearer")),
            ("another scheme", None, Some("Basic YTpi"), passed("system:anonymous /pods authorization=Basic YTpi")),
            ("a bad certificate and a good token", Some(&expired), Some("Bearer good-bob"), (200, "bob /pods")),
            ("a bad certificate and a bad token", Some(&expired), Some("Bearer nope"), bad),
        ];
        for (name, shown, token, (code, body)) in rows {
            let headers: Vec<_> = token.map(|t| ("authorization", t)).into_iter().collect();
            for two in [false, true] {
                let mut client = if two { bed.h2(shown).await } else { bed.h1(shown).await };
                let answer = client.ask("GET", "/pods", &headers).await;
                assert_eq!((answer.code, answer.body.as_str()), (code, body), "{name}, anonymous {anonymous}");
            }
        }
    }
}

#[tokio::test]
async fn the_authorizer_is_told_who_wants_what() {
    let bed = Bed::new().await;
    bed.h1(Some(&bed.alice())).await.get("/metrics/cadvisor").await;
    bed.h1(None).await.token("/stats/summary", "good-bob").await;
    let attributes = |subresource: &str| json!({ "verb": "get", "version": "v1", "resource": "nodes", "subresource": subresource, "name": "n1" });
    let specs = bed.api.reviews("SubjectAccessReview");
    let alice = json!({
        "resourceAttributes": attributes("metrics"), "user": "alice", "groups": ["ops", "system:authenticated"],
    });
    let bob = json!({
        "resourceAttributes": attributes("stats"), "user": "bob", "groups": ["tokens", "system:authenticated"],
    });
    assert_eq!(specs, [alice, bob]);
    assert_eq!(bed.api.reviews("TokenReview"), [json!({ "token": "good-bob" })]);
}

#[tokio::test]
async fn own_subresources_are_tried_first_and_proxy_after_them() {
    let bed = Bed::new().await;
    let mut client = bed.h1(Some(&bed.alice())).await;
    bed.api.allow(&["get metrics"]);
    assert_eq!(client.get("/metrics/cadvisor").await, (200, "alice /metrics/cadvisor".to_owned()));
    let denied = "Forbidden (user=alice, verb=get, resource=nodes, subresource(s)=[pods proxy])\n";
    let answer = client.ask("GET", "/pods", &[]).await;
    assert_eq!((answer.code, answer.body.as_str()), (403, denied));
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    // HEAD has no verb.
    assert_eq!(client.ask("HEAD", "/metrics", &[]).await.code, 403);

    let bed = Bed::new().await;
    let mut client = bed.h1(Some(&bed.alice())).await;
    bed.api.allow(&["get proxy"]);
    for path in
        ["/healthz", "/pods", "/configz", "/containerLogs/ns/pod/c", "/bosun/why/ns/pod", "/bosun/timeline/ns/pod"]
    {
        assert_eq!(client.get(path).await.0, 200, "{path}");
    }
    for path in ["/metrics", "/stats/summary", "/logs/", "/checkpoint/ns/pod/c", "/statusz", "/flagz"] {
        assert_eq!(client.get(path).await.0, 403, "{path}");
    }
    assert_eq!(client.ask("POST", "/exec/ns/pod/c", &[]).await.code, 403);
}

#[tokio::test]
async fn with_the_gate_off_there_is_one_subresource() {
    let bed = Bed::with(|front| front.fine_grained = false, Router::new()).await;
    bed.api.allow(&["get pods"]);
    let denied = "Forbidden (user=alice, verb=get, resource=nodes, subresource=proxy)".to_owned();
    assert_eq!(bed.h1(Some(&bed.alice())).await.get("/pods").await, (403, denied));
}

#[tokio::test]
async fn answers_of_the_authorizer_are_kept() {
    let bed = Bed::new().await;
    bed.api.allow(&["get metrics"]);
    let mut client = bed.h1(Some(&bed.alice())).await;
    for _ in 0..3 {
        assert_eq!(client.get("/metrics").await.0, 200);
        assert_eq!(client.get("/logs/").await.0, 403);
    }
    assert_eq!(bed.api.reviews("SubjectAccessReview").len(), 2);
}

#[tokio::test]
async fn answers_end_with_their_time() {
    let short = Duration::from_millis(20);
    let settings = |front: &mut Front| {
        front.authz = Authz::Webhook { allowed_ttl: Duration::from_secs(300), denied_ttl: short };
        front.authn.cache_ttl = short;
    };
    let bed = Bed::with(settings, Router::new()).await;
    bed.api.allow(&[]);
    let mut client = bed.h1(None).await;
    assert_eq!(client.token("/logs/", "good-bob").await.0, 403);
    bed.api.allow(&["*"]);
    let changed = async {
        while client.token("/logs/", "good-bob").await.0 != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), changed).await.expect("the denial ends");
    assert_eq!(bed.api.reviews("SubjectAccessReview").len(), 2);
    assert!(bed.api.reviews("TokenReview").len() > 1);
}

#[tokio::test]
async fn an_authorizer_that_fails_is_500_and_asked_again() {
    let bed = Bed::new().await;
    bed.api.lasting_trouble(Matching::any(), refusal());
    let mut client = bed.h1(Some(&bed.alice())).await;
    let failed = "Authorization error (user=alice, verb=get, resource=nodes, subresource=pods)".to_owned();
    assert_eq!(client.get("/pods").await, (500, failed.clone()));
    bed.api.calm();
    bed.api.lasting_trouble(Matching::any(), Trouble::Garbage);
    assert_eq!(client.get("/pods").await, (500, failed));
    bed.api.calm();
    assert_eq!(client.get("/pods").await.0, 200);
    assert_eq!(bed.counted().authorizer_failures, 2);
}

#[tokio::test]
async fn a_token_of_nobody_is_asked_about_once() {
    let bed = Bed::with(|front| front.authn.anonymous = true, Router::new()).await;
    let mut client = bed.h2(None).await;
    for _ in 0..5 {
        assert_eq!(client.token("/pods", "nope").await, (401, "Unauthorized".to_owned()));
        assert_eq!(client.token("/pods", "good-bob").await, (200, "bob /pods".to_owned()));
    }
    assert_eq!(bed.api.reviews("TokenReview").len(), 2);
}

#[tokio::test]
async fn a_review_that_fails_for_a_while_is_tried_again() {
    let bed = Bed::new().await;
    bed.api.fail("POST", "", 1, ApiError::status(503, "ServiceUnavailable", "later"));
    assert_eq!(bed.h1(None).await.token("/pods", "good-bob").await.0, 200);
    assert_eq!(bed.api.reviews("TokenReview").len(), 2);
    for trouble in [refusal(), Trouble::Garbage] {
        bed.api.calm();
        bed.api.lasting_trouble(Matching::any(), trouble);
        assert_eq!(bed.h1(None).await.token("/pods", "good-carol").await, (401, "Unauthorized".to_owned()));
    }
}

#[tokio::test]
async fn the_same_token_is_reviewed_once_at_a_time_and_one_that_is_never_answered_is_401() {
    let bed = Bed::with(|front| front.limits.review = Duration::from_millis(300), Router::new()).await;
    bed.api.lasting_trouble(Matching::any(), Trouble::Hang);
    let mut clients = Vec::new();
    for _ in 0..40 {
        clients.push(bed.h1(None).await);
    }
    let asked = clients.iter_mut().map(|client| client.token("/pods", "good-bob"));
    for answer in futures::future::join_all(asked).await {
        assert_eq!(answer, (401, "Unauthorized".to_owned()));
    }
    assert_eq!(bed.api.reviews("TokenReview").len(), 1);
}

#[tokio::test]
async fn a_flood_of_made_up_tokens_at_a_silent_webhook_piles_nothing_up() {
    let bed = Bed::with(|front| front.limits.review = Duration::from_secs(5), Router::new()).await;
    let alice = bed.alice();
    let mut known = bed.h1(Some(&alice)).await;
    assert_eq!(known.get("/pods").await.0, 200);
    bed.api.lasting_trouble(Matching::any(), Trouble::Hang);
    let flood: Vec<_> = (0..200)
        .map(|n| {
            let stream = bed.tls(b"http/1.1", None);
            async move {
                let mut client = super::bed::Client::h1(stream.await.ok()?).await;
                let request = axum::http::Request::get("/pods").header("authorization", format!("Bearer t{n}"));
                Some(client.send(request.body(axum::body::Body::empty()).unwrap()).await.ok()?.code)
            }
        })
        .collect();
    let flood = futures::future::join_all(flood);
    let served = async {
        for _ in 0..20 {
            assert_eq!(known.get("/pods").await.0, 200, "who was let in before is served");
        }
    };
    let (codes, ()) = tokio::join!(flood, served);
    let busy = codes.iter().filter(|c| **c == Some(429)).count();
    assert!(busy >= 150, "{busy} of 200 were told to come again");
    assert_eq!(codes.iter().filter(|c| **c == Some(200)).count(), 0);
    assert!(bed.api.reviews("TokenReview").len() <= 16);
}

#[tokio::test]
async fn made_up_tokens_from_one_origin_do_not_keep_tokens_begun_elsewhere_out() {
    let bed = Bed::new().await;
    let mut flood = bed.h2(None).await;
    let mut busy = 0;
    for n in 0..200 {
        busy += u32::from(flood.token("/pods", &format!("made-up-{n}")).await.0 == 429);
    }
    assert!(busy >= 100, "{busy} of 200 were told to come again");
    let mut other = bed.h1_from([127, 0, 0, 2]).await;
    assert_eq!(other.token("/pods", "good-bob").await, (200, "bob /pods".to_owned()));
}

#[tokio::test]
async fn a_token_among_websocket_protocols_counts_and_is_not_passed_on() {
    let bed = Bed::new().await;
    let mut client = bed.h1(None).await;
    // `good-bob` in base64url.
    let protocols = "base64url.bearer.authorization.k8s.io.Z29vZC1ib2I, v5.channel.k8s.io";
    let upgrade = [("connection", "Upgrade"), ("upgrade", "websocket"), ("sec-websocket-protocol", protocols)];
    let answer = client.ask("GET", "/exec/ns/pod/c", &upgrade).await;
    assert_eq!(
        (answer.code, answer.body.as_str()),
        (200, "bob /exec/ns/pod/c sec-websocket-protocol=v5.channel.k8s.io")
    );
    // Not a websocket request: the header says nothing.
    let answer = bed.h1(None).await.ask("GET", "/exec/ns/pod/c", &upgrade[2..]).await;
    assert_eq!(answer.code, 401);
    let bad = [upgrade[0], upgrade[1], ("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.bm9wZQ,v5")];
    assert_eq!(bed.h1(None).await.ask("GET", "/exec/ns/pod/c", &bad).await.code, 401);
}

#[tokio::test]
async fn the_router_sees_the_path_that_was_authorised() {
    let bed = Bed::new().await;
    bed.api.allow(&["get metrics"]);
    let mut client = bed.h1(Some(&bed.alice())).await;
    assert_eq!(client.get("/%6detrics/%63advisor?a=%2e").await, (200, "alice /metrics/cadvisor".to_owned()));
    let tricks = [
        "//exec/ns/p/c",
        "/metrics/../exec/ns/p/c",
        "/metrics/%2e%2e/exec/ns/p/c",
        "/metrics%2f..%2fexec/ns/p/c",
        "/metrics/..%2fexec/ns/p/c",
        "/metrics//exec",
        "/metrics/.",
        "/metrics/%00",
        "/./metrics",
        "/pods/../exec",
    ];
    for path in tricks {
        let (code, body) = client.get(path).await;
        assert!(code == 400 && body.starts_with("Bad Request: "), "{path}: {code} {body}");
        assert_eq!(bed.h1(None).await.get(path).await.0, 401, "{path}");
    }
    for path in ["/Metrics", "/metricsx", "/%65xec/ns/p/c", "/metrics;x", "/exec/metrics", "/metrics%20"] {
        assert_eq!(client.get(path).await.0, 403, "{path}");
    }
    assert_eq!(bed.handled.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_at_the_start() {
    type Change = fn(&mut Front);
    let settled = |change: Change| async move {
        let mut front = front(&api(), contract::Wiring::default().value());
        change(&mut front);
        open(front).await.map(drop).map_err(|e| e.to_string())
    };
    let all: [(Change, &str); 5] = [
        (|f| f.authn.webhook = false, "no authentication method configured"),
        (|f| f.api = None, "no client provided, cannot use webhook authentication"),
        (
            |f| {
                f.api = None;
                f.authn.webhook = false;
                f.authn.anonymous = true;
            },
            "no client provided, cannot use webhook authorization",
        ),
        (
            |f| f.authn.client_ca_file = Some("/nonexistent/ca.crt".into()),
            "client CA file /nonexistent/ca.crt (--client-ca-file) cannot be used: No such file or directory (os error 2)",
        ),
        (|f| f.tls.min_version = "SSLv3".to_owned(), "TLS cannot be set up: tlsMinVersion \"SSLv3\" is not known"),
    ];
    for (change, wanted) in all {
        assert_eq!(settled(change).await, Err(wanted.to_owned()));
    }
    let standalone: Change = |f| {
        f.api = None;
        f.authn.webhook = false;
        f.authn.anonymous = true;
        f.authz = Authz::AlwaysAllow;
    };
    assert_eq!(settled(standalone).await, Ok(()));
}

#[tokio::test]
async fn standalone_anonymous_and_always_allow_let_everybody_in() {
    let settings = |front: &mut Front| {
        front.api = None;
        front.authn.webhook = false;
        front.authn.anonymous = true;
        front.authn.client_ca_file = None;
        front.authz = Authz::AlwaysAllow;
    };
    let bed = Bed::with(settings, Router::new()).await;
    // A token that nobody can review is as if it were not there; so is a certificate that nobody asked for.
    let answer = bed.h1(Some(&bed.alice())).await.token("/pods", "x").await;
    assert_eq!(answer, (200, "system:anonymous /pods authorization=Bearer x".to_owned()));
}

#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_flag_and_port() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut front = front(&api(), contract::Wiring::default().value());
    front.port = port;
    let error = open(front).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on 127.0.0.1:{port} (--port)"));
    let settings = crate::front::ReadOnly {
        address: "127.0.0.1".parse().unwrap(),
        port,
        limits: crate::front::Limits::default(),
        accepting: crate::listener::Accepting::default(),
    };
    let error = crate::front::open_read_only(settings).await.unwrap_err();
    assert!(matches!(error, ServeError::Listen { flag: "--read-only-port", .. }));
}
