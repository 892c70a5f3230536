use std::sync::Arc;

use actor::Kernel;
use contract::Wiring;
use contract::certificates::CertificateView;
use contract::node::NodeView;
use contract::pod_manager::DesiredPod;

use super::*;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use tower::ServiceExt;

/// A node that has nothing yet, and the wiring to play its crew with.
fn views() -> (Wiring, Views) {
    let (wiring, kernel) = (Wiring::default(), Kernel::new(actor::KernelConfig::default()));
    let views = Views::new(&wiring.crew(), kernel, "node".into());
    (wiring, views)
}

fn post_pod(wiring: &Wiring, uid: &str, namespace: &str, name: &str) {
    let metadata = serde_json::json!({"name": name, "namespace": namespace});
    let pod = fakes::pod(uid, serde_json::json!({"metadata": metadata, "spec": {"containers": [{"name": "app"}]}}));
    fakes::desire(wiring, pod, contract::config_sources::Source::File);
}

async fn call(views: &Views, method: &str, path: &str, body: &str) -> (StatusCode, String) {
    let request = Request::builder().method(method).uri(path).body(Body::from(body.to_owned())).unwrap();
    let response = router(views.clone()).oneshot(request).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

#[tokio::test]
async fn pods_are_found_by_name_short_name_qualified_name_and_uid() {
    let (wiring, views) = views();
    post_pod(&wiring, "u1", "default", "web-node");
    post_pod(&wiring, "u2", "other", "db-node");
    for name in ["web-node", "web", "default%2Fweb-node", "default%2Fweb", "u1"] {
        let (status, text) = call(&views, "GET", &format!("/v1/pods/{name}"), "").await;
        assert_eq!(status, StatusCode::OK, "{name}: {text}");
        assert!(text.contains("\"uid\":\"u1\""), "{name}");
    }
    let (status, text) = call(&views, "GET", "/v1/pods/none", "").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(text.contains("bosun get pods"), "{text}");
}

#[tokio::test]
async fn an_ambiguous_name_is_refused_with_the_candidates() {
    let (wiring, views) = views();
    post_pod(&wiring, "u1", "a", "web-node");
    post_pod(&wiring, "u2", "b", "web-node");
    let (status, text) = call(&views, "GET", "/v1/pods/web", "").await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(text.contains("a/web-node") && text.contains("b/web-node"), "{text}");
}

#[tokio::test]
async fn a_namespace_settles_which_pod_is_meant() {
    let (wiring, views) = views();
    post_pod(&wiring, "u1", "a", "web-node");
    post_pod(&wiring, "u2", "b", "web-node");
    let (status, text) = call(&views, "GET", "/v1/pods/b%2Fweb", "").await;
    assert_eq!((status, text.contains("\"uid\":\"u2\"")), (StatusCode::OK, true), "{text}");
    assert_eq!(call(&views, "GET", "/v1/pods/c%2Fweb", "").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_node_tells_of_registration_and_certificates_and_standalone_of_neither() {
    let (wiring, mut views) = views();
    let node = |text: &str| serde_json::from_str::<NodeInfo>(text).unwrap();
    let (_, text) = call(&views, "GET", "/v1/node", "").await;
    assert!(node(&text).registration.is_none() && node(&text).api.is_none(), "{text}");
    views.cluster = true;
    wiring.set(NodeView {
        registered: true,
        ready: Some((false, "no network".into())),
        lease_renewed_at: Some(model::Timestamp::from_secs(7)),
        ..NodeView::default()
    });
    wiring.set(CertificateView {
        client: Some(Arc::new(contract::certificates::KeyPair {
            certificate_pem: "public".into(),
            key_pem: "nobody may read this".into(),
            not_before: model::Timestamp::ZERO,
            not_after: model::Timestamp::from_secs(9),
        })),
        ..CertificateView::default()
    });
    let (_, text) = call(&views, "GET", "/v1/node", "").await;
    let info = node(&text);
    let registration = info.registration.unwrap();
    assert_eq!((registration.registered, registration.lease_renewed_ns), (true, Some(7_000_000_000)));
    assert_eq!((info.ready, info.ready_message.as_str()), (Some(false), "no network"));
    assert_eq!(info.certificates.client_expires_ns, Some(9_000_000_000));
    assert!(!text.contains("nobody may read this"), "a key left the daemon");
}

#[tokio::test]
async fn what_runs_short_is_told_with_its_thresholds_and_what_came_of_it() {
    use contract::eviction::{
        ConditionView, OrderView, PressureView, ReclaimView, SignalView, ThresholdView, VictimView,
    };
    use model::Timestamp;
    let (wiring, views) = views();
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let (_, text) = call(&views, "GET", "/v1/pressure", "").await;
    assert_eq!(json(&text), serde_json::json!({ "signals": [], "conditions": [] }));
    let at = Timestamp::from_secs;
    let threshold =
        |grace_ms, since, due| ThresholdView { below: "10%".into(), reclaim: "1Gi".into(), grace_ms, since, due };
    wiring.set(PressureView {
        looked_at: at(9),
        signals: vec![SignalView {
            signal: "nodefs.available".into(),
            available: Some(1),
            capacity: Some(20),
            thresholds: vec![threshold(0, Some(at(7)), true), threshold(1500, None, false)],
        }],
        conditions: vec![ConditionView { condition: "DiskPressure".into(), until: Some(at(300)) }],
        reclaim: Some(ReclaimView { at: at(8), signal: "nodefs.available".into(), freed_bytes: Some(5), enough: true }),
        victim: Some(VictimView { at: at(3), pod: "a/b".into(), signal: "s".into(), message: "m".into() }),
        // Nobody knows yet what becomes of it.
        ordered: Some(OrderView {
            uid: "u".into(),
            victim: VictimView::default(),
            annotations: [].into(),
            due: Vec::new(),
            looked_at: at(9),
        }),
    });
    let (_, text) = call(&views, "GET", "/v1/pressure", "").await;
    let wanted = serde_json::json!({
        "lookedAtNs": 9_000_000_000_i64,
        "signals": [{ "signal": "nodefs.available", "available": 1, "capacity": 20, "thresholds": [
            { "below": "10%", "minimumReclaim": "1Gi", "hard": true, "graceSeconds": 0.0, "crossedSinceNs": 7_000_000_000_i64, "due": true },
            { "below": "10%", "minimumReclaim": "1Gi", "hard": false, "graceSeconds": 1.5, "due": false },
        ] }],
        "conditions": [{ "condition": "DiskPressure", "untilNs": 300_000_000_000_i64 }],
        "lastReclaim": { "atNs": 8_000_000_000_i64, "signal": "nodefs.available", "freedBytes": 5, "enough": true },
        "lastVictim": { "atNs": 3_000_000_000_i64, "pod": "a/b", "signal": "s", "message": "m" },
    });
    assert_eq!(json(&text), wanted);
}

#[tokio::test]
async fn the_nodes_own_endpoints_are_served_beside_the_views_and_may_upgrade() {
    use axum::http::header;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bosun.sock");
    let extra = Router::new().route(
        "/exec/{pod}",
        get(|mut request: Request<Body>| async move {
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let mut both = TokioIo::new(upgrade.await.unwrap());
                let mut word = [0; 4];
                both.read_exact(&mut word).await.unwrap();
                both.write_all(&word).await.unwrap();
            });
            (StatusCode::SWITCHING_PROTOCOLS, [(header::CONNECTION, "upgrade"), (header::UPGRADE, "echo")])
        }),
    );
    let server =
        tokio::spawn(serve(listen(&path, Accepting::default()).unwrap(), views().1, extra, std::future::pending()));
    let mut stream = tokio::net::UnixStream::connect(&path).await.unwrap();
    stream
        .write_all(b"GET /exec/web HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nping")
        .await
        .unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.unwrap();
    let text = String::from_utf8(all).unwrap();
    assert!(text.starts_with("HTTP/1.1 101 ") && text.ends_with("\r\n\r\nping"), "{text}");
    server.abort();
}

#[tokio::test]
async fn a_pod_that_is_being_stopped_is_still_listed_as_terminating() {
    let (wiring, views) = views();
    post_pod(&wiring, "u1", "default", "web-node");
    let pod = views.pods.get(&"u1".into()).unwrap().pod.clone();
    wiring.take_away::<DesiredPod>(&"u1".into());
    let row = |phase| contract::pod_worker::WorkerState {
        deleted: true,
        synced_at: model::Timestamp::from_secs(1_700_000_000),
        pod: Some(pod.clone()),
        ..contract::pod_worker::WorkerState::new(phase)
    };
    wiring.put("u1".into(), row(contract::pod_worker::WorkerPhase::Terminating));
    let (_, text) = call(&views, "GET", "/v1/pods", "").await;
    assert!(text.contains("deletionTimestamp"), "{text}");
    wiring.put("u1".into(), row(contract::pod_worker::WorkerPhase::Finished));
    let (_, text) = call(&views, "GET", "/v1/pods", "").await;
    assert!(!text.contains("web-node"), "{text}");
}

#[tokio::test]
async fn where_a_pod_stands_is_told_also_when_nobody_answers() {
    let (wiring, mut views) = views();
    views.cluster = true;
    post_pod(&wiring, "u1", "default", "web-node");
    let mut history = model::history::PodHistory::default();
    pod_history::begin(&mut history, model::history::What::Volumes, "", model::Timestamp(1));
    wiring.put("u1".into(), history);
    let syncing = contract::pod_worker::WorkerState::new(contract::pod_worker::WorkerPhase::Syncing);
    wiring.put("u1".into(), syncing);
    wiring.set(fakes::well());
    // No volume manager, no API server.
    let (status, text) = call(&views, "GET", "/v1/why/web", "").await;
    assert_eq!(status, StatusCode::OK, "{text}");
    let verdict: pod_history::Verdict = serde_json::from_str(&text).unwrap();
    assert_eq!((verdict.cause, verdict.since_ns), (pod_history::Cause::VolumeWaits, Some(1)), "{text}");
    let (_, text) = call(&views, "GET", "/v1/timeline/web", "").await;
    assert!(text.contains(r#""label":"volumes""#) && text.contains(r#""outcome":"open""#), "{text}");
    let (status, text) = call(&views, "GET", "/v1/why/wep-node", "").await;
    assert_eq!((status, text.contains("did you mean default/web-node?")), (StatusCode::NOT_FOUND, true), "{text}");
    // The same for cluster admins, below one path of the node's port.
    for path in ["/bosun/why/default/web-node", "/bosun/timeline/default/web-node"] {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let response = stands_router(views.clone()).oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn faults_need_the_flag_and_a_rule_that_parses() {
    let (_, mut views) = views();
    assert_eq!(call(&views, "POST", "/v1/faults", "x: panic@y").await.0, StatusCode::FORBIDDEN);
    views.faults = true;
    assert_eq!(call(&views, "POST", "/v1/faults", "x: panic@y#1").await.0, StatusCode::NO_CONTENT);
    assert_eq!(call(&views, "POST", "/v1/faults", "nonsense").await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_socket_is_for_root_only_and_a_stale_one_is_replaced() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run/bosun.sock");
    let first = bind(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let e = bind(&path).unwrap_err();
    assert!(e.to_string().contains("another bosun"), "{e}");
    drop(first);
    bind(&path).unwrap();
}
