//! Directories that cannot be listed: nothing is taken away, nothing in use is forgotten, and new volumes come all the same.

use contract::volume::{ListVolumes, VolumeStage};
use serde_json::json;

use super::cluster::{Cluster, DRIVER, pod_with, secs, spawn, with_cluster};

fn name(handle: &str) -> String {
    format!("kubernetes.io/csi/{DRIVER}^{handle}")
}

/// Plays the Node and the controller for this volume, beside what the Node said before.
fn attach(c: &Cluster, handle: &str, before: &[String]) {
    let in_use: Vec<String> = before.iter().cloned().chain([name(handle)]).collect();
    c.node(&in_use.iter().map(String::as_str).collect::<Vec<_>>(), &[&name(handle)]);
    c.attachment(handle, json!({ "attached": true }));
}

/// Places that are looked at for volumes.
const PLACES: [&str; 6] = [
    "pods",
    "pods/other/volumes/kubernetes.io~csi",
    "plugins/kubernetes.io/csi",
    "plugins/kubernetes.io/csi/d.example",
    "plugins/kubernetes.io/local-volume/mounts",
    "plugins/kubernetes.io/iscsi",
];

#[test]
fn new_volumes_come_after_a_start_that_could_not_look_everywhere() {
    for place in PLACES {
        with_cluster(async |mut c| {
            c.driver(json!({}));
            c.claim("a", json!({}));
            c.host.dir(place);
            c.host.fail("readdir", place);
            c.restart().await;
            secs(5).await;
            assert_eq!(c.in_use(), None, "{place}: nobody knows what was in use before");
            let told = name("h-old");
            c.node(&[&told], &[]);
            secs(2).await;
            assert_eq!(c.in_use(), Some(vec!["h-old".to_owned()]), "{place}: what the Node said counts on");
            let waiting = spawn(&c, &pod_with("u1", &["a"]));
            secs(1).await;
            attach(&c, "h-a", &[told]);
            waiting.await.unwrap().unwrap_or_else(|e| panic!("{place}: {e}"));
            let row = c.bench.wiring.ask(ListVolumes).await.unwrap();
            let is_told =
                row.iter().any(|row| row.stage == VolumeStage::Unreadable && row.path == Some(c.host.path(place)));
            assert_eq!(is_told, !place.ends_with("iscsi"), "{place}: {row:?}");
            assert_eq!(c.in_use(), Some(vec!["h-a".to_owned(), "h-old".to_owned()]), "{place}");
            c.host.disk.calm();
            secs(61).await;
            assert_eq!(c.in_use(), Some(vec!["h-a".to_owned()]), "{place}: now all is known");
        });
    }
}

#[test]
fn what_is_in_use_stays_so_while_it_cannot_be_seen() {
    // What is below `pods` must be listed to take a volume from its pod.
    for place in &PLACES[1..] {
        with_cluster(async |c| {
            c.driver(json!({}));
            c.claim("a", json!({}));
            attach(&c, "h-a", &[]);
            c.mount(&pod_with("u1", &["a"])).await.unwrap();
            c.csi.calls();
            c.host.dir(place);
            c.host.fail("readdir", place);
            c.unmount("u1").await.unwrap();
            secs(200).await;
            assert_eq!(c.csi.calls(), ["unpublish h-a"], "{place}: somebody may have it");
            assert_eq!(c.in_use(), Some(vec!["h-a".to_owned()]), "{place}");
            c.host.disk.calm();
            secs(61).await;
            assert_eq!(c.csi.calls(), ["unstage h-a"], "{place}");
            assert_eq!(c.in_use(), Some(vec![]), "{place}");
        });
    }
}
