//! Volumes that are mounted with an SELinux context.

use std::sync::Arc;

use csi_api::v1::VolumeCapability;
use csi_api::v1::volume_capability::AccessType;
use metrics::volumes::{
    SELINUX_ADMITTED, SELINUX_POD_ERRORS, SELINUX_POD_WARNINGS, SELINUX_VOLUME_ERRORS, SELINUX_VOLUME_WARNINGS,
};
use model::core::Pod;
use serde_json::{Value, json};

use super::cluster::{Cluster, pod_of, secs, spawn, with_cluster, with_selinux};
use super::rig::with_spec;

const FILES: &str = "system_u:object_r:container_file_t:s0";

fn volume(claim: &str) -> Value {
    json!({ "name": "v", "persistentVolumeClaim": { "claimName": claim } })
}

/// A pod whose processes have this level.
fn pod(uid: &str, level: &str) -> Arc<Pod> {
    pod_of(uid, vec![volume("a")], json!({ "seLinuxOptions": { "level": level } }))
}

/// A claim of a driver that mounts with contexts.
fn claim(c: &Cluster, mode: &str) {
    c.driver(
        json!({ "attachRequired": false, "seLinuxMount": true, "volumeLifecycleModes": ["Persistent", "Ephemeral"] }),
    );
    c.claim("a", json!({ "accessModes": [mode], "mountOptions": ["noatime"] }));
}

fn flags(capability: Option<VolumeCapability>) -> Vec<String> {
    let Some(AccessType::Mount(mount)) = capability.unwrap().access_type else { panic!("no mount") };
    mount.mount_flags
}

fn staged(c: &Cluster) -> Vec<String> {
    flags(c.csi.last_stage().volume_capability)
}

fn file(c: &Cluster) -> String {
    c.host.read(format!("{}/vol_data.json", c.stage_dir("h-a")))
}

#[test]
fn a_volume_for_one_pod_is_mounted_with_the_label_of_its_pod() {
    with_selinux(false, async |c| {
        claim(&c, "ReadWriteOncePod");
        let mounted = c.mount(&pod("u1", "s0:c1,c2")).await.unwrap();
        let context = format!("{FILES}:c1,c2");
        let wanted = ["noatime".to_owned(), format!("context=\"{context}\"")];
        assert_eq!((staged(&c), flags(c.csi.last_publish().volume_capability)), (wanted.to_vec(), wanted.to_vec()));
        let of_pod = c.host.read("pods/u1/volumes/kubernetes.io~csi/pv-a/vol_data.json");
        for file in [of_pod, file(&c)] {
            assert!(file.contains(&format!("\"seLinuxMountContext\":{context:?}")), "{file}");
        }
        assert!(!mounted.volumes["v"].selinux_relabel, "the runtime need not look at each file");
    });
}

#[test]
fn a_volume_has_no_label_where_pod_driver_mode_or_node_say_so() {
    let none = async |c: Cluster, mode: &str, security: Value| {
        c.claim("a", json!({ "accessModes": [mode] }));
        let mounted = c.mount(&pod_of("u1", vec![volume("a")], security)).await.unwrap();
        assert_eq!(staged(&c), [""; 0]);
        assert!(!file(&c).contains("seLinuxMountContext") && mounted.volumes["v"].selinux_relabel);
    };
    let options = json!({ "level": "s0:c1" });
    let label = || json!({ "seLinuxOptions": options });
    let recursive = json!({ "seLinuxOptions": options, "seLinuxChangePolicy": "Recursive" });
    with_selinux(true, async |c| none(c, "ReadWriteOncePod", label()).await);
    with_cluster(async |c| {
        claim(&c, "ReadWriteOncePod");
        none(c, "ReadWriteOncePod", label()).await;
    });
    for (every_mode, mode, security) in [
        (false, "ReadWriteOnce", label()),
        (true, "ReadWriteOncePod", recursive.clone()),
        (true, "ReadWriteOncePod", json!({})),
        (true, "ReadWriteOncePod", json!({ "seLinuxOptions": { "type": "t" } })),
    ] {
        with_selinux(every_mode, async |c| {
            claim(&c, mode);
            none(c, mode, security).await;
        });
    }
    with_selinux(true, async |c| {
        claim(&c, "ReadWriteMany");
        let inline = json!({ "name": "v", "csi": { "driver": super::cluster::DRIVER } });
        c.mount(&pod_of("u1", vec![inline], label())).await.unwrap();
        assert_eq!(flags(c.csi.last_publish().volume_capability), [""; 0], "one that stands in the pod");
        let read_only = json!({ "name": "v", "persistentVolumeClaim": { "claimName": "a", "readOnly": true } });
        let mounted = c.mount(&pod_of("u2", vec![read_only], json!({}))).await.unwrap();
        assert!(!mounted.volumes["v"].selinux_relabel, "nobody writes labels to it");
    });
}

#[test]
fn containers_of_a_pod_must_agree_on_the_label() {
    let container = |name: &str, level: &str| {
        let mounts = json!([{ "name": "v", "mountPath": "/v" }]);
        json!({ "name": name, "volumeMounts": mounts, "securityContext": { "seLinuxOptions": { "level": level } } })
    };
    let two = |uid: &str| {
        let containers = [container("x", "s0:c1"), container("y", "s0:c2")];
        with_spec(uid, json!({ "volumes": [volume("a")], "containers": containers }))
    };
    with_selinux(false, async |c| {
        claim(&c, "ReadWriteOncePod");
        let before = SELINUX_POD_ERRORS.with_label_values(&["RWOP"]).get();
        let e = c.mount(&two("u1")).await.unwrap_err();
        let why = format!("multiple SELinux labels found: {FILES}:c1,{FILES}:c2");
        assert!(e.message.ends_with(&why), "{e}");
        assert_eq!(SELINUX_POD_ERRORS.with_label_values(&["RWOP"]).get(), before + 1);
        assert_eq!((c.csi.calls(), c.bench.told()), (vec![], vec![]));
        claim(&c, "ReadWriteOnce");
        let before = SELINUX_POD_WARNINGS.with_label_values(&["RWO"]).get();
        c.mount(&two("u2")).await.unwrap();
        assert_eq!(staged(&c), ["noatime"]);
        assert_eq!(SELINUX_POD_WARNINGS.with_label_values(&["RWO"]).get(), before + 1);
        let local = c.host.path("");
        c.claim("l", json!({ "csi": null, "local": { "path": local.to_str() }, "accessModes": ["ReadWriteOncePod"] }));
        let containers = [container("x", "s0:c1"), container("y", "s0:c2")];
        let pod = with_spec("u3", json!({ "volumes": [volume("l")], "containers": containers }));
        assert!(c.mount(&pod).await.unwrap_err().message.ends_with(&why), "as in a kubelet");
    });
}

#[test]
fn pods_with_several_labels_do_not_have_one_volume_at_a_time() {
    let plugin = "kubernetes.io/csi/d.example";
    with_selinux(true, async |c| {
        claim(&c, "ReadWriteMany");
        let counted = || {
            let labels = [plugin, "RWX"];
            (SELINUX_ADMITTED.with_label_values(&labels).get(), SELINUX_VOLUME_ERRORS.with_label_values(&labels).get())
        };
        let before = counted();
        c.mount(&pod("u1", "s0:c1")).await.unwrap();
        c.mount(&pod("u2", "s0:c1")).await.unwrap();
        c.csi.calls();
        let e = c.mount(&pod("u3", "s0:c2")).await.unwrap_err();
        let why = format!("conflicting SELinux labels of volume pv-a: \"{FILES}:c1\" and \"{FILES}:c2\"");
        assert!(e.message.ends_with(&why), "{e}");
        assert_eq!((counted(), c.csi.calls()), ((before.0 + 1, before.1 + 1), vec![]));
        c.unmount("u1").await.unwrap();
        c.unmount("u2").await.unwrap();
        c.mount(&pod("u3", "s0:c2")).await.unwrap();
        assert_eq!(c.csi.calls(), ["unpublish h-a", "unpublish h-a", "unstage h-a", "stage h-a", "publish h-a"]);
        assert!(staged(&c)[1].ends_with(":s0:c2\"") && file(&c).contains(":s0:c2"));
    });
    with_selinux(false, async |c| {
        claim(&c, "ReadWriteMany");
        let warned = || SELINUX_VOLUME_WARNINGS.with_label_values(&[plugin, "RWX"]).get();
        let before = warned();
        for uid in ["u1", "u2", "u2"] {
            c.mount(&pod(uid, if uid == "u1" { "s0:c1" } else { "s0:c2" })).await.unwrap();
        }
        assert_eq!((warned(), staged(&c)), (before + 1, vec!["noatime".to_owned()]));
    });
}

#[test]
fn a_volume_that_is_staged_with_another_label_is_unstaged_first_when_nobody_has_it() {
    with_selinux(false, async |mut c| {
        claim(&c, "ReadWriteOncePod");
        c.mount(&pod("u1", "s0:c1")).await.unwrap();
        // A daemon that knows no more than the disk says.
        c.restart().await;
        c.csi.calls();
        let e = c.mount(&pod("u2", "s0:c2")).await.unwrap_err();
        let name = "kubernetes.io/csi/d.example^h-a";
        let why = format!(
            "waiting for unmount of volume {name:?}, because it is already mounted to a different pod with a different SELinux label"
        );
        assert!(e.message.ends_with(&why), "{e}");
        // What the pod runs with stays, also when the driver mounts with labels no more.
        c.driver(json!({ "attachRequired": false }));
        assert!(!c.mount(&pod("u1", "s0:c1")).await.unwrap().volumes["v"].selinux_relabel);
        assert!(staged(&c)[1].ends_with(":s0:c1\""));
        claim(&c, "ReadWriteOncePod");
        let waiting = spawn(&c, &pod("u2", "s0:c2"));
        secs(1).await;
        drop(waiting);
        c.csi.calls();
        c.unmount("u1").await.unwrap();
        c.mount(&pod("u2", "s0:c2")).await.unwrap();
        assert_eq!(c.csi.calls(), ["unpublish h-a", "unstage h-a", "stage h-a", "publish h-a"]);
        assert!(staged(&c)[1].ends_with(":s0:c2\""));
        c.unmount("u2").await.unwrap();
        secs(1).await;
        assert!(c.is_clean() && c.csi.is_idle());
        assert_eq!(c.csi.wrong(), [""; 0]);
    });
}
