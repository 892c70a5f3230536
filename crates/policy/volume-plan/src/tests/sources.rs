use model::PodUid;
use model::core::Volume;
use serde_json::json;

use super::persistent;
use crate::claim::Mode;
use crate::source::{Csi, Source, of_inline, of_persistent_volume};

#[test]
fn a_volume_of_a_driver_is_told_with_all_its_fields() {
    let csi = json!({
        "driver": "d.example", "volumeHandle": "h1", "fsType": "xfs", "volumeAttributes": { "a": "1" }, "readOnly": true,
        "nodeStageSecretRef": { "namespace": "s", "name": "stage" },
        "nodePublishSecretRef": { "namespace": "s", "name": "publish" },
    });
    let spec = json!({ "csi": csi, "accessModes": ["ReadWriteOnce"], "mountOptions": ["noatime"], "capacity": { "storage": "1Gi" } });
    let found =
        of_persistent_volume(&persistent(spec.clone(), json!({ "pv.beta.kubernetes.io/gid": "4711" })), false).unwrap();
    let Source::Csi(csi) = &found.source else { panic!("{found:?}") };
    assert_eq!(csi.unique_name(), "kubernetes.io/csi/d.example^h1");
    assert_eq!((csi.fs_type.as_str(), csi.attributes["a"].as_str(), csi.is_inline), ("xfs", "1", false));
    assert_eq!(csi.stage_secret, Some(("s".to_owned(), "stage".to_owned())));
    assert_eq!(csi.expand_secret, None);
    assert_eq!(
        (found.name.as_str(), found.mode, found.read_only, found.group),
        ("pv1", Mode::Filesystem, false, Some(4711))
    );
    assert_eq!((found.size.value(), found.mount_options), (1 << 30, vec!["noatime".to_owned()]));
    let annotated = json!({ "volume.beta.kubernetes.io/mount-options": "ro, soft", "pv.beta.kubernetes.io/gid": "-1" });
    let found = of_persistent_volume(&persistent(spec, annotated), true).unwrap();
    assert_eq!(
        (found.mount_options, found.read_only, found.group),
        (vec!["ro".to_owned(), "soft".to_owned()], true, None)
    );
}

#[test]
fn what_this_node_cannot_have_is_refused_by_name() {
    for (spec, part) in [
        (json!({ "nfs": { "server": "s", "path": "/" } }), "no volume plugin matched: nfs volumes are not supported"),
        (json!({ "flexVolume": { "driver": "x" } }), "no volume plugin matched: flexVolume volumes are not supported"),
        (json!({}), "it has no source"),
        (
            json!({ "hostPath": { "path": "/x" }, "volumeMode": "Block" }),
            "no volume plugin matched: hostPath volumes cannot be had as devices",
        ),
        (
            json!({ "hostPath": { "path": "/x" }, "mountOptions": ["ro"] }),
            "mount options are not supported for this volume type",
        ),
    ] {
        let e = of_persistent_volume(&persistent(spec, json!({})), false).unwrap_err();
        assert!(e.contains(part), "{e}");
    }
    for (local, fs_type) in [(json!({ "path": "/x" }), "ext4"), (json!({ "path": "/x", "fsType": "xfs" }), "xfs")] {
        let found = of_persistent_volume(&persistent(json!({ "local": local }), json!({})), false).unwrap();
        assert_eq!(found.source, Source::Local { path: "/x".into(), fs_type: fs_type.into() });
    }
}

#[test]
fn a_volume_that_stands_in_a_pod_has_a_handle_of_its_own() {
    let csi = json!({ "driver": "d", "readOnly": true, "nodePublishSecretRef": { "name": "s" } });
    let volume: Volume = serde_json::from_value(json!({ "name": "v", "csi": csi })).unwrap();
    let found = of_inline(&PodUid::from("u1"), "shop", &volume).unwrap();
    let Source::Csi(Csi { handle, publish_secret, is_inline, .. }) = &found.source else { panic!("{found:?}") };
    // printf u1v | sha256sum
    assert_eq!(handle, "csi-3df5ffc60026e8207ea59c1564beebc5d9845fde03ed041b10fa368ddd17875f");
    assert_eq!((publish_secret.clone(), *is_inline, found.read_only), (Some(("shop".into(), "s".into())), true, true));
    let other: Volume = serde_json::from_value(json!({ "name": "v", "emptyDir": {} })).unwrap();
    assert_eq!(of_inline(&PodUid::from("u1"), "shop", &other), None);
}
