//! Parts of volumes of drivers (subPath).

use contract::volume::PrepareSubPath;
use serde_json::json;

use super::cluster::{Cluster, pod_with, with_cluster};

async fn part(c: &Cluster, index: usize) -> std::path::PathBuf {
    let ask = PrepareSubPath {
        uid: "u1".into(),
        container: "app".into(),
        volume: "v-a".into(),
        volume_path: c.host.path("pods/u1/volumes/kubernetes.io~csi/pv-a/mount"),
        sub_path: "logs".into(),
        mount_index: index,
    };
    c.bench.wiring.ask(ask).await.unwrap().unwrap()
}

#[test]
fn a_part_of_a_drivers_volume_goes_before_the_driver_is_asked_to_take_it() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        // The volume's own name, by which a kubelet takes it away as well.
        let at = "pods/u1/volume-subpaths/pv-a/app/3";
        assert_eq!(part(&c, 3).await, c.host.path(at));
        assert!(c.host.is_mounted(at) && c.host.exists("pods/u1/volumes/kubernetes.io~csi/pv-a/mount/logs"));
        c.csi.calls();
        c.host.fail("unmount", at);
        let e = c.unmount("u1").await.unwrap_err();
        assert!(e.message.contains("volume-subpaths/pv-a"), "{e}");
        assert_eq!(c.csi.calls(), [""; 0], "the driver could not take what is still bound");
        c.host.disk.calm();
        c.unmount("u1").await.unwrap();
        assert_eq!(c.csi.calls()[0], "unpublish h-a");
        assert!(!c.host.exists("pods/u1/volume-subpaths") && c.csi.wrong().is_empty());
    });
}
