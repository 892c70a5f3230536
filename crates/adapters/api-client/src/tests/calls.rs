use std::time::{Duration, Instant};

use actor::testing::spin_until;
use fake_api::HttpTrouble;
use fakes::api::{Matching, Trouble};
use model::core::{Event, Node, Pod};
use ports::api::{ApiError, ApiExt, ApiServer, Method, Preconditions, Request, Throttle};
use serde_json::json;

use super::{client, pair, pod, settings};
use crate::{ApiClient, Rate};

fn get(path: &str) -> Request {
    Request::new(Method::Get, path)
}

fn busy(retry_after_s: Option<u64>) -> ApiError {
    ApiError::Status {
        code: 429,
        reason: "TooManyRequests".to_owned(),
        message: "please try again later".to_owned(),
        retry_after: retry_after_s.map(Duration::from_secs),
    }
}

#[tokio::test]
async fn all_verbs_go_through() {
    let (server, client) = pair().await;
    let created: Pod = client.create(Some("default"), &pod("a")).await.unwrap();
    assert!(created.metadata.uid.is_some());
    let read: Pod = client.get(Some("default"), "a").await.unwrap();
    assert_eq!(read, created);
    let patch = json!({ "status": { "phase": "Running" } });
    let patched: Pod = client.patch_status::<Pod, _>(Some("default"), "a", &patch, Throttle::Main).await.unwrap();
    assert_eq!(patched.status.unwrap().phase.as_deref(), Some("Running"));
    let put = Request::to::<Pod>(Method::Put, Some("default"), Some("a")).json(&created).unwrap();
    let refused = client.fetch::<Pod>(put).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    let other = Preconditions { uid: Some("x".to_owned()), grace_s: Some(0) };
    assert!(client.delete::<Pod>(Some("default"), "a", other).await.unwrap_err().is_conflict());
    let now = Preconditions { uid: created.metadata.uid, grace_s: Some(0) };
    client.delete::<Pod>(Some("default"), "a", now).await.unwrap();
    assert_eq!(server.api().requests().len(), 6);
}

#[tokio::test]
async fn failures_keep_code_reason_and_message() {
    let (server, client) = pair().await;
    let missing = client.get::<Pod>(Some("default"), "a").await.unwrap_err();
    assert_eq!(missing, ApiError::status(404, "NotFound", "pods \"a\" not found"));
    let rows = [
        ApiError::status(403, "Forbidden", "node 'n' cannot read all nodes"),
        ApiError::status(409, "AlreadyExists", "exists"),
        ApiError::status(410, "Expired", "too old"),
        ApiError::status(500, "InternalError", "boom"),
        busy(None),
    ];
    for error in rows {
        server.api().trouble(Matching::any(), Trouble::Fail(error.clone()), 1);
        assert_eq!(client.get::<Node>(None, "n").await.unwrap_err(), error);
    }
}

#[tokio::test]
async fn answers_that_are_not_of_the_api_are_told_as_such() {
    let (server, client) = pair().await;
    let rows = [
        (200, "<html>login</html>", "garbage"),
        (200, "[]", "garbage"),
        (200, "{\"kind\": ", "garbage"),
        (502, "<html>bad gateway</html>", "502"),
        (503, "", "503"),
        (500, "{\"kind\": \"Pod\"}", "500"),
        (302, "", "302"),
    ];
    for (code, body, wanted) in rows {
        server.trouble(Matching::any(), HttpTrouble::Body(code, body.to_owned()), 1);
        let error = client.get::<Node>(None, "n").await.unwrap_err();
        let found = match &error {
            ApiError::Garbage { .. } => "garbage".to_owned(),
            other => other.code().unwrap_or(0).to_string(),
        };
        assert_eq!(found, wanted, "{code} {body}: {error:?}");
    }
    server.trouble(Matching::any(), HttpTrouble::Body(200, "<html>".to_owned()), 1);
    let deleted = client.delete::<Pod>(Some("default"), "a", Preconditions::default()).await;
    assert!(matches!(deleted, Err(ApiError::Garbage { .. })), "a login page deletes nothing");
}

#[tokio::test]
async fn a_server_that_asks_to_wait_is_asked_again() {
    let (server, client) = pair().await;
    server.api().put(&pod("a"));
    server.api().trouble(Matching::any(), Trouble::Fail(busy(Some(0))), 9);
    assert!(client.get::<Pod>(Some("default"), "a").await.is_ok());
    assert_eq!(server.api().requests().len(), 10);

    server.api().trouble(Matching::any(), Trouble::Fail(busy(Some(0))), 20);
    assert_eq!(client.get::<Pod>(Some("default"), "a").await.unwrap_err(), busy(Some(0)));
    assert_eq!(server.api().requests().len(), 21, "ten times, not for ever");
}

#[tokio::test]
async fn nobody_waits_beyond_the_deadline_for_a_server_that_asks_to_wait() {
    let (server, client) = pair().await;
    server.api().trouble(Matching::any(), Trouble::Fail(busy(Some(60))), 1);
    let began = Instant::now();
    let error = client.call(get("/api/v1/nodes/n").deadline(Duration::from_secs(10))).await.unwrap_err();
    assert_eq!(error, busy(Some(60)));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_deadline_within_a_retry_tells_what_the_server_said_last() {
    let (server, client) = pair().await;
    server.api().trouble(Matching::any(), Trouble::Fail(busy(Some(0))), 1);
    server.api().lasting_trouble(Matching::any(), Trouble::Hang);
    let error = client.call(get("/api/v1/nodes/n").deadline(Duration::from_millis(60))).await.unwrap_err();
    assert_eq!(error, busy(Some(0)));
}

#[tokio::test]
async fn without_a_time_to_wait_nothing_is_sent_again() {
    let (server, client) = pair().await;
    for code in [429, 500, 503] {
        server.api().forget_requests();
        server.api().trouble(Matching::any(), Trouble::Fail(ApiError::status(code, "x", "y")), 1);
        assert_eq!(client.get::<Node>(None, "n").await.unwrap_err().code(), Some(code));
        assert_eq!(server.api().requests().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_that_never_comes_ends_with_the_deadline() {
    let (server, client) = pair().await;
    server.api().lasting_trouble(Matching::any(), Trouble::Hang);
    let after = Duration::from_millis(60);
    let error = client.call(get("/api/v1/nodes/n").deadline(after)).await.unwrap_err();
    assert_eq!(error, ApiError::TimedOut { after });
}

#[tokio::test]
async fn a_broken_connection_is_made_anew_for_reads_and_reported_for_writes() {
    let (server, client) = pair().await;
    server.api().put(&pod("a"));
    server.trouble(Matching::of("POST", ""), HttpTrouble::Cut, 1);
    let error = client.create(Some("default"), &pod("b")).await.unwrap_err();
    assert!(matches!(error, ApiError::Unreachable { .. }), "{error:?}");
    server.trouble(Matching::of("GET", ""), HttpTrouble::CutBody, 1);
    assert!(client.get::<Pod>(Some("default"), "a").await.is_ok());
}

#[tokio::test]
async fn a_server_that_is_gone_is_unreachable_and_found_when_it_is_back() {
    let (mut server, client) = pair().await;
    server.api().put(&pod("a"));
    server.unplug().await;
    let error = client.get::<Pod>(Some("default"), "a").await.unwrap_err();
    assert!(matches!(&error, ApiError::Unreachable { message } if message.contains("refused")), "{error:?}");
    server.plug().await;
    assert!(client.get::<Pod>(Some("default"), "a").await.is_ok());
}

#[tokio::test]
async fn events_and_heartbeats_are_not_held_up_by_a_busy_common_limit() {
    let (server, _) = pair().await;
    let mut slow = settings();
    slow.main = Rate { per_second: 0.01, burst: 1 };
    let client = ApiClient::new(&super::kubeconfig(&server), slow).unwrap();
    let ask = |throttle| get("/api/v1/nodes/n").throttle(throttle).deadline(super::SOON);
    assert!(client.call(ask(Throttle::Main)).await.unwrap_err().is_not_found());
    let hasty = ask(Throttle::Main).deadline(Duration::from_millis(50));
    assert!(matches!(client.call(hasty).await, Err(ApiError::TimedOut { .. })), "its turn is in 100 s");
    for _ in 0..5 {
        assert!(client.call(ask(Throttle::Events)).await.unwrap_err().is_not_found());
        assert!(client.call(ask(Throttle::Unlimited)).await.unwrap_err().is_not_found());
    }
}

#[tokio::test]
async fn heartbeats_that_fail_in_a_row_make_new_connections() {
    let (server, client) = pair().await;
    let mut exchanges = client.exchanges();
    server.api().lasting_trouble(Matching::any(), Trouble::Hang);
    let beat =
        |ms| client.call(get("/api/v1/nodes/n").throttle(Throttle::Unlimited).deadline(Duration::from_millis(ms)));
    assert!(beat(20).await.is_err());
    assert_eq!(*exchanges.borrow_and_update(), 0, "once is no pattern");
    assert!(beat(20).await.is_err());
    assert_eq!(*exchanges.borrow_and_update(), 1);
    server.api().calm();
    assert!(beat(20_000).await.unwrap_err().is_not_found(), "an answer is a heartbeat that arrived");
    assert!(!exchanges.has_changed().unwrap());
}

#[tokio::test]
async fn connections_are_used_again() {
    let (server, client) = pair().await;
    for _ in 0..20 {
        assert!(client.get::<Event>(Some("default"), "e").await.unwrap_err().is_not_found());
    }
    assert_eq!(server.peers().len(), 1);
}

#[tokio::test]
async fn the_server_may_live_below_a_path() {
    let (server, _) = pair().await;
    let mut kubeconfig = super::kubeconfig(&server);
    kubeconfig.server = format!("{}/apis", server.url()).parse().unwrap();
    let below = ApiClient::new(&kubeconfig, settings()).unwrap();
    // "/apis" + "/api/v1/..." is no path that the server knows, but it is the path that arrives.
    let _ = below.call(get("/api/v1/nodes/n")).await;
    spin_until("the request arrives", || server.api().requests().iter().any(|r| r.path == "/apis/api/v1/nodes/n"))
        .await;
    drop(client(&server));
}
