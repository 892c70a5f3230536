use std::time::Duration;

use futures::StreamExt;
use model::core::{Node, Pod};
use ports::api::{
    ApiError, ApiExt, ApiServer, Followed, Kind, Method, Object, Preconditions, Request, Selection, Throttle,
};
use serde_json::json;
use tokio::time::Instant;

use super::{FakeApi, Matching, Trouble};

fn pod(name: &str, node: &str) -> Pod {
    let spec =
        json!({ "nodeName": node, "terminationGracePeriodSeconds": 30, "containers": [{ "name": "c", "image": "i" }] });
    crate::object(json!({ "metadata": { "name": name, "namespace": "default" }, "spec": spec }))
}

fn pods_of(node: &str) -> Selection {
    Selection { kind: Kind::Pod, namespace: None, field_selector: format!("spec.nodeName={node}") }
}

/// `+name`, `-name`, `=a,b`, `!message`.
fn short(step: &Followed) -> String {
    let name = |o: &Object| match o {
        Object::Pod(p) => p.metadata.name.clone().unwrap(),
        other => format!("{other:?}"),
    };
    match step {
        Followed::All(all) => format!("={}", all.iter().map(name).collect::<Vec<_>>().join(",")),
        Followed::Applied(o) => format!("+{}", name(o)),
        Followed::Deleted(o) => format!("-{}", name(o)),
        Followed::Failed(e) => format!("!{e}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_follow_begins_with_the_whole_and_goes_on_with_changes() {
    let api = FakeApi::new();
    api.put(&pod("a", "n1"));
    api.put(&pod("other", "n2"));
    let mut follow = api.follow(pods_of("n1"));
    assert_eq!(short(&follow.next().await.unwrap()), "=a");
    api.put(&pod("b", "n1"));
    api.change::<Pod>(Some("default"), "a", |p| p.spec.as_mut().unwrap().hostname = Some("x".to_owned()));
    api.change::<Pod>(Some("default"), "other", |p| p.spec.as_mut().unwrap().hostname = Some("x".to_owned()));
    api.user_deletes::<Pod>(Some("default"), "b", Some(0)).unwrap();
    for wanted in ["+b", "+a", "-b"] {
        assert_eq!(short(&follow.next().await.unwrap()), wanted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_follow_fails_once_and_begins_anew() {
    let api = FakeApi::new();
    api.put(&pod("a", "n1"));
    let mut follow = api.follow(pods_of("n1"));
    assert_eq!(short(&follow.next().await.unwrap()), "=a");
    api.unplug();
    api.put(&pod("b", "n1"));
    assert_eq!(short(&follow.next().await.unwrap()), "!dial tcp: connection refused");
    assert_eq!(short(&follow.next().await.unwrap()), "!dial tcp: connection refused");
    api.calm();
    assert_eq!(short(&follow.next().await.unwrap()), "=a,b");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_does_not_hide_the_others() {
    let api = FakeApi::new();
    api.put(&pod("a", "n1"));
    api.put_json(
        "/api/v1/namespaces/default/pods/bad",
        json!({ "metadata": { "name": "bad" }, "spec": { "nodeName": "n1", "containers": 7 } }),
    );
    let mut follow = api.follow(pods_of("n1"));
    assert_eq!(short(&follow.next().await.unwrap()), "=a");
    assert!(matches!(follow.next().await.unwrap(), Followed::Failed(ApiError::Garbage { .. })));
}

#[tokio::test(start_paused = true)]
async fn status_patches_change_only_the_status_and_hold_the_uid() {
    let api = FakeApi::new();
    let stored = api.put(&pod("a", "n1"));
    let uid = stored.metadata.uid.clone().unwrap();
    let patch = json!({ "metadata": { "uid": uid }, "spec": { "hostname": "no" }, "status": { "phase": "Running", "podIPs": [{ "ip": "10.0.0.1" }] } });
    let after: Pod = api.patch_status::<Pod, _>(Some("default"), "a", &patch, Throttle::Main).await.unwrap();
    assert_eq!(after.status.as_ref().unwrap().phase.as_deref(), Some("Running"));
    assert_eq!(after.spec.unwrap().hostname, None);
    let same: Pod = api.patch_status::<Pod, _>(Some("default"), "a", &patch, Throttle::Main).await.unwrap();
    assert_eq!(
        same.metadata.resource_version, after.metadata.resource_version,
        "a patch that changes nothing writes nothing"
    );
    let stale = json!({ "metadata": { "uid": "another" }, "status": { "phase": "Failed" } });
    let refused = api.patch_status::<Pod, Pod>(Some("default"), "a", &stale, Throttle::Main).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_bound_pod_goes_when_the_node_says_so() {
    let api = FakeApi::new();
    let uid = api.put(&pod("a", "n1")).metadata.uid;
    api.user_deletes::<Pod>(Some("default"), "a", None).unwrap();
    let dying: Pod = api.get(Some("default"), "a").await.unwrap();
    assert_eq!(dying.metadata.deletion_grace_period_seconds, Some(30));
    let other = Preconditions { uid: Some("other".to_owned()), grace_s: Some(0) };
    assert!(api.delete::<Pod>(Some("default"), "a", other).await.unwrap_err().is_conflict());
    api.delete::<Pod>(Some("default"), "a", Preconditions { uid, grace_s: Some(0) }).await.unwrap();
    assert!(api.get::<Pod>(Some("default"), "a").await.unwrap_err().is_not_found());
}

#[tokio::test(start_paused = true)]
async fn updates_with_an_old_version_conflict() {
    let api = FakeApi::new();
    let node: Node =
        serde_json::from_value(json!({ "metadata": { "name": "n1" }, "status": { "phase": "x" } })).unwrap();
    let first: Node = api.create(None, &node).await.unwrap();
    assert!(api.create(None, &node).await.unwrap_err().is_already_exists());
    api.change::<Node>(None, "n1", |n| n.spec.get_or_insert_default().unschedulable = Some(true));
    let request = Request::to::<Node>(Method::Put, None, Some("n1")).json(&first).unwrap();
    assert!(api.fetch::<Node>(request).await.unwrap_err().is_conflict());
}

#[tokio::test(start_paused = true)]
async fn trouble_comes_as_often_as_asked() {
    let api = FakeApi::new();
    api.put(&pod("a", "n1"));
    api.fail("GET", "pods/a", 2, ApiError::status(500, "InternalError", "boom"));
    for wanted in [Some(500), Some(500), None] {
        assert_eq!(api.get::<Pod>(Some("default"), "a").await.err().and_then(|e| e.code()), wanted);
    }
    api.trouble(Matching::path("pods/a"), Trouble::Hang, 1);
    let began = Instant::now();
    assert!(matches!(api.get::<Pod>(Some("default"), "a").await, Err(ApiError::TimedOut { .. })));
    assert_eq!(began.elapsed(), Duration::from_secs(30));
    let log = api.requests_of("GET", "pods/a");
    assert_eq!(log.iter().map(|r| r.failure.is_some()).collect::<Vec<_>>(), [true, true, false, true]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_be_lost_after_the_deed() {
    let api = FakeApi::new();
    let gone = ApiError::Unreachable { message: "reset".to_owned() };
    api.trouble(Matching::of("POST", "/nodes"), Trouble::DoneButLost(gone), 1);
    let node: Node = serde_json::from_value(json!({ "metadata": { "generateName": "n-" } })).unwrap();
    assert!(api.create(None, &node).await.is_err());
    assert_eq!(api.read_all::<Node>(None).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn tokens_are_bound_to_the_pod_of_that_uid() {
    let api = FakeApi::new();
    let uid = api.put(&pod("a", "n1")).metadata.uid.unwrap();
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let ask = |uid: &str| json!({ "spec": { "audiences": [], "expirationSeconds": 3607, "boundObjectRef": { "kind": "Pod", "name": "a", "uid": uid } } });
    let token = api.answer(ports::api::Method::Post, path, &[], ask(&uid)).unwrap();
    assert!(token["status"]["token"].as_str().unwrap().starts_with("token.default.default."));
    assert!(api.answer(ports::api::Method::Post, path, &[], ask("other")).unwrap_err().is_conflict());
}
