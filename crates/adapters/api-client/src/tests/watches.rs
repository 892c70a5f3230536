use std::time::Duration;

use actor::testing::spin_until;
use fake_api::{FakeApiServer, HttpTrouble};
use fakes::FakeApi;
use fakes::api::{Matching, Trouble};
use model::core::{ConfigMap, Pod};
use ports::api::{ApiError, ApiServer, Followed, Object};
use serde_json::json;

use super::{client, expect, followed, kubeconfig, map, maps, pair, pod, pods, settings, short, step, until};
use crate::ApiClient;

const DEFAULT: Option<&str> = Some("default");

fn gone() -> ApiError {
    ApiError::status(503, "ServiceUnavailable", "etcd is away")
}

/// Requests that listed pods.
fn lists(server: &FakeApiServer) -> usize {
    server.api().requests_of("GET", "/api/v1/pods").len()
}

#[tokio::test]
async fn a_follow_begins_with_the_whole_and_goes_on_with_changes() {
    let (server, client) = pair().await;
    let api = server.api();
    api.put(&pod("a"));
    let mut follow = followed(&client, pods(), "=a").await;
    api.put(&pod("b"));
    api.change::<Pod>(DEFAULT, "a", |p| p.metadata.labels = Some([("x".to_owned(), "y".to_owned())].into()));
    api.vanish::<Pod>(DEFAULT, "b");
    // Leaves the selection.
    api.change::<Pod>(DEFAULT, "a", |p| p.spec.as_mut().unwrap().node_name = Some("n2".to_owned()));
    expect(&mut follow, &["+b", "+a", "-b", "-a"]).await;
    assert_eq!(lists(&server), 1);
}

#[tokio::test]
async fn who_wrote_which_field_is_not_kept() {
    let (server, client) = pair().await;
    let managed = json!([{ "manager": "kubectl", "operation": "Update", "fieldsV1": { "f:spec": {} } }]);
    server.api().put_json(
        "/api/v1/namespaces/default/configmaps/a",
        json!({ "metadata": { "name": "a", "managedFields": managed }, "data": { "k": "v" } }),
    );
    let mut follow = client.follow(maps());
    let Followed::All(all) = step(&mut follow).await else { panic!("no list") };
    let Object::ConfigMap(map) = &all[0] else { panic!("another kind") };
    assert!(map.metadata.managed_fields.is_none() && map.data.is_some());
}

#[tokio::test]
async fn a_watch_whose_time_is_over_is_resumed_without_a_list() {
    let (server, _) = pair().await;
    let mut short = settings();
    short.watch.life_s = (0, 0);
    let client = ApiClient::new(&kubeconfig(&server), short).unwrap();
    let mut follow = followed(&client, pods(), "=").await;
    let next = tokio::spawn(async move { super::short(&step(&mut follow).await) });
    spin_until("watches follow each other", || server.watches_begun() >= 3).await;
    server.api().put(&pod("a"));
    assert_eq!(next.await.unwrap(), "+a");
    assert_eq!(lists(&server), 1);
}

#[tokio::test]
async fn a_cut_watch_is_resumed_and_nothing_is_missed() {
    let (server, client) = pair().await;
    let mut follow = followed(&client, pods(), "=").await;
    for n in 0..5 {
        server.cut();
        server.api().put(&pod(&format!("p{n}")));
        assert_eq!(until(&mut follow, &format!("+p{n}")).await, Vec::<String>::new());
    }
    assert_eq!(lists(&server), 1);
}

#[tokio::test]
async fn a_watch_that_breaks_after_each_event_loses_none() {
    let (server, client) = pair().await;
    let mut follow = followed(&client, pods(), "=").await;
    server.watches(|w| w.cut_after = Some(1));
    for name in ["a", "b", "c", "d"] {
        server.api().put(&pod(name));
    }
    expect(&mut follow, &["+a", "+b", "+c", "+d"]).await;
}

#[tokio::test]
async fn an_expired_version_is_listed_anew_from_the_newest_state() {
    let (server, client) = pair().await;
    server.api().put(&pod("a"));
    let mut follow = followed(&client, pods(), "=a").await;
    server.watches(|w| w.expire = 1);
    server.cut();
    server.api().vanish::<Pod>(DEFAULT, "a");
    server.api().put(&pod("b"));
    let seen = until(&mut follow, "=b").await;
    assert!(!seen.contains(&"!".to_owned()), "an expired version is no failure: {seen:?}");
    let last = server.api().requests_of("GET", "/api/v1/pods").pop().unwrap();
    assert!(last.query.iter().all(|(k, _)| k != "resourceVersion"), "{:?}", last.query);
}

#[tokio::test]
async fn a_storm_of_expired_versions_is_met_with_pauses() {
    let (server, _) = pair().await;
    let mut slow = settings();
    slow.watch.pause_first = Duration::from_millis(100);
    slow.watch.pause_most = Duration::from_millis(200);
    let client = ApiClient::new(&kubeconfig(&server), slow).unwrap();
    server.watches(|w| w.expire = 4);
    let began = std::time::Instant::now();
    let mut follow = client.follow(pods());
    expect(&mut follow, &["=", "=", "=", "=", "="]).await;
    assert!(began.elapsed() >= Duration::from_millis(100 + 200 + 200), "the first is listed at once, the others wait");
    server.api().put(&pod("a"));
    expect(&mut follow, &["+a"]).await;
}

#[tokio::test]
async fn an_expired_answer_to_the_watch_itself_is_listed_anew() {
    let (server, client) = pair().await;
    let status = json!({ "kind": "Status", "status": "Failure", "code": 410, "reason": "Gone", "message": "too old" });
    let mut follow = followed(&client, pods(), "=").await;
    server.trouble(Matching::of("GET", "/pods"), HttpTrouble::Body(410, status.to_string()), 1);
    server.cut();
    expect(&mut follow, &["="]).await;
}

#[tokio::test]
async fn a_half_closed_watch_is_noticed() {
    let (server, _) = pair().await;
    let mut quick = settings();
    quick.watch.idle = Duration::from_millis(150);
    let client = ApiClient::new(&kubeconfig(&server), quick).unwrap();
    let mut follow = followed(&client, pods(), "=").await;
    server.watches(|w| w.silent = true);
    let next = tokio::spawn(async move { short(&step(&mut follow).await) });
    spin_until("it is taken up anew", || server.watches_begun() >= 2).await;
    server.api().put(&pod("a"));
    server.watches(|w| w.silent = false);
    assert_eq!(next.await.unwrap(), "+a");
    assert_eq!(lists(&server), 1);
}

#[tokio::test]
async fn bookmarks_keep_a_silent_watch_alive_and_carry_the_version() {
    let (server, _) = pair().await;
    let mut quick = settings();
    quick.watch.idle = Duration::from_millis(400);
    let client = ApiClient::new(&kubeconfig(&server), quick).unwrap();
    server.watches(|w| w.bookmark_every = Duration::from_millis(20));
    let mut follow = followed(&client, pods(), "=").await;
    let next = tokio::spawn(async move { short(&step(&mut follow).await) });
    spin_until("the watch begins", || server.watches_begun() == 1).await;
    // Changes elsewhere; only bookmarks, 20 ms apart, tell this watch that time went on.
    for n in 0..30 {
        server.api().put(&map("m", &n.to_string()));
        spin_until("a bookmark", || server.bookmarks() > n).await;
    }
    assert_eq!(server.watches_begun(), 1, "longer than the idle time, and still the first");
    let current = server.api().peek(fakes::api::Store::version);
    server.cut();
    spin_until("the watch is resumed", || server.watches_begun() == 2).await;
    server.api().put(&pod("a"));
    assert_eq!(next.await.unwrap(), "+a");
    let from = server.watch_versions().pop().unwrap().parse::<u64>().unwrap();
    assert!(from + 10 > current, "resumed at {from}, not at the list's version (now {current})");
}

#[tokio::test]
async fn a_list_that_fails_is_reported_and_tried_again() {
    let (server, client) = pair().await;
    server.api().put(&pod("a"));
    server.api().trouble(Matching::of("GET", "/pods"), Trouble::Fail(gone()), 3);
    let mut follow = client.follow(pods());
    for _ in 0..3 {
        assert_eq!(step(&mut follow).await, Followed::Failed(gone()));
    }
    expect(&mut follow, &["=a"]).await;
}

#[tokio::test]
async fn an_api_server_that_was_away_is_listed_anew() {
    let (mut server, client) = pair().await;
    server.api().put(&pod("a"));
    let mut follow = followed(&client, pods(), "=a").await;
    server.unplug().await;
    expect(&mut follow, &["!"]).await;
    server.api().vanish::<Pod>(DEFAULT, "a");
    server.api().put(&pod("b"));
    server.plug().await;
    until(&mut follow, "=b").await;
}

#[tokio::test]
async fn a_cluster_restored_from_an_older_state_is_listed_anew() {
    let (mut server, client) = pair().await;
    for n in 0..20 {
        server.api().put(&map("m", &n.to_string()));
    }
    let mut follow = followed(&client, pods(), "=").await;
    server.unplug().await;
    expect(&mut follow, &["!"]).await;
    server.api().store(|store| *store = fakes::api::Store::default());
    server.api().put(&pod("old"));
    server.plug().await;
    until(&mut follow, "=old").await;
}

#[tokio::test]
async fn an_object_that_cannot_be_read_does_not_hide_the_others() {
    let (server, client) = pair().await;
    let bad = json!({ "metadata": { "name": "bad" }, "spec": { "nodeName": "n1", "containers": [{ "name": 7 }] } });
    server.api().put_json("/api/v1/namespaces/default/pods/bad", bad.clone());
    server.api().put(&pod("good"));
    let mut follow = followed(&client, pods(), "=good").await;
    let Followed::Failed(ApiError::Garbage { message }) = step(&mut follow).await else { panic!("not told") };
    assert!(message.contains("pod default/bad"), "{message}");
    server.api().put_json("/api/v1/namespaces/default/pods/worse", bad);
    server.api().put(&pod("better"));
    expect(&mut follow, &["!", "+better"]).await;
    assert_eq!((lists(&server), server.watches_begun()), (1, 1), "the watch went on");
}

#[tokio::test]
async fn garbage_in_a_watch_or_a_list_ends_with_the_truth() {
    let (server, client) = pair().await;
    server.trouble(Matching::of("GET", "/pods"), HttpTrouble::Body(200, "<html>".to_owned()), 1);
    server.trouble(Matching::of("GET", "/pods"), HttpTrouble::Body(200, "{\"items\": []}".to_owned()), 1);
    server.trouble(Matching::of("GET", "/pods"), HttpTrouble::CutBody, 1);
    server.watches(|w| w.garbage = 2);
    let mut follow = client.follow(pods());
    expect(&mut follow, &["!", "!", "!", "=", "!", "!"]).await;
    server.api().put(&pod("a"));
    until(&mut follow, "+a").await;
}

#[tokio::test]
async fn events_that_come_twice_or_in_reverse_are_passed_on() {
    let (server, client) = pair().await;
    let mut follow = followed(&client, maps(), "=").await;
    server.watches(|w| w.silent = true);
    server.api().put(&map("a", "1"));
    server.api().put(&map("b", "1"));
    server.watches(|w| (w.silent, w.twice, w.reversed) = (false, true, true));
    server.cut();
    expect(&mut follow, &["+b", "+b", "+a", "+a"]).await;
    server.api().put(&map("c", "1"));
    expect(&mut follow, &["+c", "+c"]).await;
    assert_eq!(server.api().read_all::<ConfigMap>(DEFAULT).len(), 3);
}

#[tokio::test]
async fn large_objects_come_whole() {
    let (server, client) = pair().await;
    let mut follow = followed(&client, maps(), "=").await;
    let large = "x".repeat(900_000);
    server.api().put(&map("big", &large));
    let Followed::Applied(Object::ConfigMap(found)) = step(&mut follow).await else { panic!("no change") };
    assert_eq!(found.data.as_ref().unwrap()["k"].len(), large.len());
}

#[tokio::test]
async fn a_follow_that_is_dropped_ends_its_watch() {
    let api = FakeApi::new();
    let server = FakeApiServer::plain(api.clone()).await;
    let client = client(&server);
    let mut follow = followed(&client, pods(), "=").await;
    api.put(&pod("a"));
    expect(&mut follow, &["+a"]).await;
    assert_eq!(server.watches_open(), 1);
    drop(follow);
    spin_until("the server sees its end", || {
        api.store(|_| ());
        server.watches_open() == 0
    })
    .await;
}
