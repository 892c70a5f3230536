//! Volumes that are for one pod: who may have one when not all can be seen.

use fakes::files::FileTrouble;
use serde_json::json;

use super::cluster::{pod_with, secs, spawn, with_cluster};

const IN_USE: &str = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";

#[test]
fn a_directory_that_cannot_be_listed_holds_up_only_what_may_be_in_it() {
    for (place, is_refused) in [
        ("pods/u2/volumes/kubernetes.io~csi", false),
        ("plugins/kubernetes.io/csi", false),
        ("plugins/kubernetes.io/local-volume/mounts", false),
        // It wants the same claim.
        ("pods/u3/volumes/kubernetes.io~csi", true),
        ("pods/unknown/volumes/kubernetes.io~csi", true),
        ("pods", true),
    ] {
        with_cluster(async |c| {
            c.mount(&pod_with("u3", &["a"])).await.unwrap_err();
            c.claim("a", json!({ "accessModes": ["ReadWriteOncePod"] }));
            c.claim("b", json!({}));
            c.mount(&pod_with("u2", &["b"])).await.unwrap();
            c.host.dir(place);
            c.host.fail("readdir", place);
            let waits = spawn(&c, &pod_with("u1", &["a"]));
            secs(5).await;
            let told = c.bench.told();
            assert_eq!(waits.is_finished(), !is_refused, "{place}: {told:?}");
            let words =
                format!("MountVolume.SetUp failed for volume \"pv-a\" : readdir {}", c.host.path(place).display());
            assert_eq!(told.iter().any(|line| line.contains(&words)), is_refused, "{place}: {told:?}");
            c.host.disk.calm();
            waits.await.unwrap().unwrap_or_else(|e| panic!("{place}: {e}"));
        });
    }
}

#[test]
fn a_volume_of_another_pod_is_seen_without_touching_it() {
    with_cluster(async |c| {
        c.host.dir("disk");
        let path = c.host.path("disk");
        let spec = json!({ "csi": null, "local": { "path": path.to_str() }, "accessModes": ["ReadWriteOncePod"] });
        c.claim("a", spec);
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        let at = c.host.path("pods/u1/volumes/kubernetes.io~local-volume/pv-a");
        // As one on a server that is gone.
        c.host.disk.trouble(&at, FileTrouble::Hang);
        let _waits = spawn(&c, &pod_with("u2", &["a"]));
        secs(1).await;
        let wanted = format!("Warning FailedMount: MountVolume.MountDevice failed for volume \"pv-a\" : {IN_USE}");
        assert_eq!(c.bench.told().first(), Some(&wanted));
    });
}
