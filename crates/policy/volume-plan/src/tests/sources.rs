use model::PodUid;
use model::core::Volume;
use serde_json::{Value, json};

use super::persistent;
use crate::claim::Mode;
use crate::share::share;
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
    let found = of_persistent_volume(&persistent(spec, annotated.clone()), true).unwrap();
    assert_eq!(
        (found.mount_options, found.read_only, found.group),
        (vec!["noatime".to_owned()], true, None),
        "drivers are told of the field alone"
    );
    let nfs = json!({ "nfs": { "server": "s", "path": "/" }, "mountOptions": ["hard"] });
    let found = of_persistent_volume(&persistent(nfs, annotated), false).unwrap();
    assert_eq!(found.mount_options, ["ro", "soft"], "in place of the field");
}

#[test]
fn what_this_node_cannot_have_is_refused_by_name() {
    for (spec, part) in [
        (
            json!({ "nfs": { "server": "s", "path": "/" }, "volumeMode": "Block" }),
            "no volume plugin matched: nfs volumes cannot be had as devices",
        ),
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
    let found = of_inline(&PodUid::from("u1"), "shop", &volume).unwrap().unwrap();
    let Source::Csi(Csi { handle, publish_secret, is_inline, .. }) = &found.source else { panic!("{found:?}") };
    // printf u1v | sha256sum
    assert_eq!(handle, "csi-3df5ffc60026e8207ea59c1564beebc5d9845fde03ed041b10fa368ddd17875f");
    assert_eq!((publish_secret.clone(), *is_inline, found.read_only), (Some(("shop".into(), "s".into())), true, true));
    let other: Volume = serde_json::from_value(json!({ "name": "v", "emptyDir": {} })).unwrap();
    assert_eq!(of_inline(&PodUid::from("u1"), "shop", &other), None);
}

#[test]
fn a_share_is_mounted_with_the_options_of_its_volume_each_once_and_sorted() {
    let words = |found: &crate::source::Resolved| share(found).map(|s| (s.kind, s.source, s.options.join(",")));
    let nfs = |server: &str| json!({ "server": server, "path": "/exports/a", "readOnly": true });
    for (server, options, read_only, source, wanted) in [
        (
            "srv.example",
            json!(["soft", "nfsvers=4.1", "soft", ""]),
            false,
            "srv.example:/exports/a",
            "nfsvers=4.1,soft",
        ),
        ("10.0.0.1", json!(["hard"]), true, "10.0.0.1:/exports/a", "hard,ro"),
        ("fd00::1", json!([]), false, "[fd00::1]:/exports/a", ""),
    ] {
        let volume = persistent(json!({ "nfs": nfs(server), "mountOptions": options }), json!({}));
        let found = of_persistent_volume(&volume, read_only).unwrap();
        assert_eq!(
            words(&found),
            Some(("nfs", source.to_owned(), wanted.to_owned())),
            "of the claim, not of the volume"
        );
    }
    let volume: Volume = serde_json::from_value(json!({ "name": "v", "nfs": nfs("srv") })).unwrap();
    let found = of_inline(&PodUid::from("u1"), "shop", &volume).unwrap().unwrap();
    assert_eq!(words(&found), Some(("nfs", "srv:/exports/a".to_owned(), "ro".to_owned())));
    assert!(found.read_only);
    let local = of_persistent_volume(&persistent(json!({ "local": { "path": "/x" } }), json!({})), false).unwrap();
    assert_eq!(share(&local), None);
}

#[test]
fn what_a_program_would_take_for_something_else_is_refused_by_name() {
    let iscsi = |more: Value| {
        let mut of = json!({ "targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:disks", "lun": 0 });
        of.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "iscsi": of })
    };
    for (source, why) in [
        (json!({ "nfs": { "server": "-o", "path": "/a" } }), "nfs.server \"-o\" begins with a dash"),
        (json!({ "nfs": { "server": "a\nb", "path": "/a" } }), "nfs.server \"a\\nb\" has a control character"),
        (iscsi(json!({ "iqn": "-x" })), "iscsi.iqn \"-x\" begins with a dash"),
        (iscsi(json!({ "portals": ["10.0.0.2", "-p"] })), "iscsi.targetPortal \"-p:3260\" begins with a dash"),
        (iscsi(json!({ "iscsiInterface": "../x" })), "iscsi.iscsiInterface \"../x\" has a '/'"),
        (iscsi(json!({ "initiatorName": "a\nb" })), "iscsi.initiatorName \"a\\nb\" has a control character"),
    ] {
        let e = of_persistent_volume(&persistent(source.clone(), json!({})), false).unwrap_err();
        assert!(e.contains(why), "{source}: {e}");
        let mut volume = source;
        volume["name"] = "v".into();
        let volume: Volume = serde_json::from_value(volume).unwrap();
        let e = of_inline(&"u1".into(), "shop", &volume).unwrap().unwrap_err();
        assert!(e.starts_with(why), "{e}");
    }
}
