//! Operations on volumes are counted by their kinds, as in a kubelet.

use std::path::Path;

use metrics::volumes::STORAGE_OPERATION;
use ports::host::FileKind;
use serde_json::{Value, json};

use super::cluster::{DRIVER, pod_of, pod_with, pod_with_devices, secs, with_cluster};

fn count(operation: &str, plugin: &str) -> u64 {
    STORAGE_OPERATION.with_label_values(&["false", operation, "success", plugin]).get_sample_count()
}

#[test]
fn each_operation_is_counted_with_the_kind_of_its_volume() {
    with_cluster(async |c| {
        let (csi, local, nfs) =
            (format!("kubernetes.io/csi:{DRIVER}"), "kubernetes.io/local-volume", "kubernetes.io/nfs");
        let host_path = "kubernetes.io/host-path";
        c.host.dir("/dev");
        c.host.disk.special(Path::new("/dev/sdx"), FileKind::BlockDevice);
        c.claim("disk", json!({ "csi": null, "local": { "path": "/dev/sdx" } }));
        c.claim("path", json!({ "csi": null, "hostPath": { "path": c.host.path("").to_str() } }));
        c.claim("share", json!({ "csi": null, "nfs": { "server": "srv", "path": "/a" } }));
        c.claim("raw", json!({ "volumeMode": "Block" }));
        let operations = [
            ("volume_mount", local),
            ("volume_mount", host_path),
            ("volume_mount", nfs),
            ("volume_unmount", local),
            ("volume_unmount", nfs),
            ("unmount_device", local),
            ("map_volume", &csi),
            ("unmap_device", &csi),
        ];
        let before = operations.map(|(operation, plugin)| count(operation, plugin));
        c.mount(&pod_with("u1", &["disk", "path", "share"])).await.unwrap();
        c.mount(&pod_with_devices("u2", &["raw"])).await.unwrap();
        for uid in ["u1", "u2"] {
            c.unmount(uid).await.unwrap();
        }
        secs(70).await;
        let after = operations.map(|(operation, plugin)| count(operation, plugin));
        assert_eq!(after, before.map(|n| n + 1), "{operations:?}");
    });
}

#[test]
fn that_a_volume_is_attached_is_counted_once_for_all_who_want_it() {
    with_cluster(async |c| {
        let (name, plugin) = (format!("kubernetes.io/csi/{DRIVER}^h-a"), format!("kubernetes.io/csi:{DRIVER}"));
        c.driver(json!({}));
        c.claim("a", json!({}));
        let now = || count("verify_controller_attached_volume", &plugin);
        let before = now();
        let waits = super::cluster::spawn(&c, &pod_with("u1", &["a"]));
        secs(5).await;
        assert_eq!(now(), before, "it waits");
        c.node(&[&name], &[&name]);
        c.attachment("h-a", json!({ "attached": true }));
        waits.await.unwrap().unwrap();
        c.mount(&pod_with("u2", &["a"])).await.unwrap();
        assert_eq!(now(), before + 1);
        for uid in ["u1", "u2"] {
            c.unmount(uid).await.unwrap();
        }
        c.mount(&pod_with("u3", &["a"])).await.unwrap();
        assert_eq!(now(), before + 2, "another time for those who come later");
    });
}

/// A path of the node is as little asked for again and again as a driver.
#[test]
fn a_path_that_fails_waits_longer_each_time() {
    for source in
        [json!({ "local": { "path": "/late" } }), json!({ "hostPath": { "path": "/late", "type": "Directory" } })]
    {
        with_cluster(async |c| {
            let mut spec: Value = source.clone();
            spec["csi"] = Value::Null;
            c.claim("a", spec);
            let pod =
                pod_of("u1", vec![json!({ "name": "v", "persistentVolumeClaim": { "claimName": "a" } })], json!({}));
            let failed = c.mount(&pod).await.unwrap_err();
            let told = c.bench.told();
            assert!((7..=9).contains(&told.len()), "{told:?}");
            let waits = super::cluster::spawn(&c, &pod);
            secs(2).await;
            assert_eq!(c.bench.told(), [""; 0], "the pause goes on: {failed}");
            c.host.dir("/late");
            secs(30).await;
            assert!(!waits.is_finished(), "{source}: nobody looks before it is over");
            drop(waits.await.unwrap());
            secs(10).await;
            c.mount(&pod).await.unwrap_or_else(|e| panic!("{source}: {e}"));
        });
    }
}
