//! What is told of volumes, and what of those that cannot be read.

use std::sync::Arc;

use contract::volume::{ListVolumes, VolumeRow, VolumeStage};
use metrics::volumes::{FORCE_CLEANED, FORCE_CLEANED_ERRORS, RECONSTRUCTED, RECONSTRUCTED_ERRORS};
use model::core::PersistentVolume;
use ports::grpc::Code;
use serde_json::json;

use super::cluster::{Cluster, DRIVER, pod_of, pod_with, secs, spawn, with_cluster};
use super::csi::Lie;

async fn rows(c: &Cluster) -> Arc<Vec<VolumeRow>> {
    c.bench.wiring.ask(ListVolumes).await.unwrap()
}

/// `pod/volume kind stage`, with the call and its age in seconds, and whether there is an error.
fn lines(c: &Cluster, rows: &[VolumeRow]) -> Vec<String> {
    let now = c.now_ns();
    let line = |r: &VolumeRow| {
        let pod = r.pod.as_ref().map_or("-", |uid| uid.as_str());
        let call = r.call.as_ref().map(|k| format!(" {} {}s", k.name, (now - k.since.0) / 1_000_000_000));
        let error = r.error.as_ref().map_or("", |_| " !");
        format!("{pod}/{} {} {:?}{}{error}", r.volume, r.kind, r.stage, call.unwrap_or_default())
    };
    rows.iter().map(line).collect()
}

#[test]
fn each_volume_is_told_with_how_far_it_is_and_what_holds_it_up() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        c.claim("b", json!({}));
        c.claim("l", json!({ "csi": null, "hostPath": { "path": c.host.path("").to_str() } }));
        assert_eq!(lines(&c, &rows(&c).await), [""; 0]);
        let volumes = vec![
            json!({ "name": "x", "persistentVolumeClaim": { "claimName": "a" } }),
            json!({ "name": "y", "persistentVolumeClaim": { "claimName": "l" } }),
            json!({ "name": "z", "emptyDir": {} }),
        ];
        c.mount(&pod_of("u1", volumes, json!({}))).await.unwrap();
        let all = rows(&c).await;
        assert_eq!(lines(&c, &all), ["u1/x csi Mounted", "u1/y hostPath Mounted", "u1/z emptyDir Mounted"]);
        let (x, path) = (&all[0], c.host.path("pods/u1/volumes/kubernetes.io~csi/pv-a/mount"));
        assert_eq!((x.driver.as_str(), x.handle.as_str(), x.claim.as_str()), (DRIVER, "h-a", "a"));
        assert_eq!(x.path.as_ref(), Some(&path));
        assert!(x.since.is_some());
        c.csi.lie("stage", &[Lie::Hang]);
        let waiting = spawn(&c, &pod_with("u2", &["b"]));
        secs(35).await;
        let all = rows(&c).await;
        assert_eq!(lines(&c, &all[1..2]), ["u2/v-b csi Uncertain NodeStageVolume 35s"], "{all:?}");
        waiting.abort();
        c.csi.lie("publish", &[Lie::Refuse(Code::Internal); 99]);
        let waiting = spawn(&c, &pod_with("u3", &["none"]));
        secs(3).await;
        waiting.await.unwrap().unwrap_err();
        let all = rows(&c).await;
        let none = all.iter().find(|r| r.pod.as_ref().is_some_and(|p| p.as_str() == "u3")).unwrap();
        assert_eq!((none.stage, none.error.is_some()), (VolumeStage::Waiting, true));
    });
}

#[test]
fn what_a_start_finds_is_counted_with_what_of_it_cannot_be_read() {
    actor::testing::run(1, async |kernel| {
        let mut c = Cluster::start(&kernel);
        for claim in ["a", "b"] {
            c.claim(claim, json!({}));
            c.mount(&pod_with(&format!("u-{claim}"), &[claim])).await.unwrap();
        }
        c.host.write("pods/u-a/volumes/kubernetes.io~csi/pv-a/vol_data.json", "{");
        let before = (RECONSTRUCTED.get(), RECONSTRUCTED_ERRORS.get());
        c.restart().await;
        secs(100).await;
        assert_eq!((RECONSTRUCTED.get(), RECONSTRUCTED_ERRORS.get()), (before.0 + 2, before.1 + 1));
    });
}

#[test]
fn a_volume_that_cannot_be_read_stays_and_stops_nobody_else() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        c.claim("b", json!({}));
        c.claim("c", json!({}));
        for (uid, claim) in [("u1", "a"), ("u2", "b"), ("u3", "c")] {
            c.mount(&pod_with(uid, &[claim])).await.unwrap();
        }
        c.host.write("pods/u1/volumes/kubernetes.io~csi/pv-a/vol_data.json", "{");
        c.csi.calls();
        let before = (FORCE_CLEANED.get(), FORCE_CLEANED_ERRORS.get());
        c.unmount("u1").await.unwrap_err();
        assert_eq!((FORCE_CLEANED.get(), FORCE_CLEANED_ERRORS.get()), (before.0 + 1, before.1 + 1));
        c.unmount("u2").await.unwrap();
        secs(100).await;
        assert_eq!(c.csi.calls(), ["unpublish h-b", "unstage h-b"], "what the directory is of is told by its name");
        let all = rows(&c).await;
        let unread: Vec<_> = all.iter().filter(|r| r.stage == VolumeStage::Unreadable).collect();
        assert_eq!(unread.len(), 1, "{all:?}");
        assert_eq!(unread[0].pod.as_ref().unwrap().as_str(), "u1");
        assert!(unread[0].error.as_ref().unwrap().contains("vol_data.json cannot be read"), "{all:?}");
        // Nobody knows any more what it is: it may be any.
        c.api.vanish::<PersistentVolume>(None, "pv-a");
        c.unmount("u3").await.unwrap();
        secs(100).await;
        assert_eq!(c.csi.calls(), ["unpublish h-c"], "none is unstaged");
        c.host.write(
            "pods/u1/volumes/kubernetes.io~csi/pv-a/vol_data.json",
            format!("{{\"driverName\":\"{DRIVER}\",\"volumeHandle\":\"h-a\"}}"),
        );
        c.unmount("u1").await.unwrap();
        secs(100).await;
        assert!(c.is_clean() && c.csi.is_idle(), "{:?}", c.csi.calls());
    });
}
