use std::collections::BTreeMap;
use std::time::Duration;

use model::core::Node;
use model::k8s_openapi::api::storage::v1::{CSIDriver, VolumeAttachment};
use serde_json::{Value, json};

use super::{persistent, pod};
use crate::attach::{Attachment, by_attachment, by_node};
use crate::backoff::Backoff;
use crate::csi::{
    DriverRules, GroupPolicy, access_mode, check_lifecycle, driver_rules, gives_to_group, is_for_one_pod,
    publish_context,
};
use crate::data;
use crate::names::attachment_name;
use crate::source::{Csi, Resolved, Source, of_persistent_volume};
use crate::state::{Mount, after_failure};
use csi_api::CsiOutcome;
use csi_api::v1::volume_capability::access_mode::Mode;

fn volume(fs_type: &str, mode: &str, read_only: bool) -> (Resolved, Csi) {
    let csi = json!({ "driver": "d", "volumeHandle": "h1", "fsType": fs_type, "volumeAttributes": { "a": "1" } });
    let spec = json!({ "csi": csi, "accessModes": [mode] });
    let found = of_persistent_volume(&persistent(spec, json!({})), read_only).unwrap();
    let csi = csi_of(&found);
    (found, csi)
}

fn csi_of(volume: &Resolved) -> Csi {
    let Source::Csi(csi) = volume.source.clone() else { panic!("{volume:?}") };
    csi
}

fn rules(spec: Value) -> DriverRules {
    let driver: CSIDriver = serde_json::from_value(json!({ "metadata": { "name": "d" }, "spec": spec })).unwrap();
    driver_rules(Some(&driver))
}

#[test]
fn access_modes_are_those_of_csi() {
    use Mode::{
        MultiNodeMultiWriter, MultiNodeReaderOnly, SingleNodeMultiWriter, SingleNodeSingleWriter, SingleNodeWriter,
    };
    for (mode, old, new) in [
        ("ReadWriteOnce", SingleNodeWriter, SingleNodeMultiWriter),
        ("ReadWriteOncePod", SingleNodeWriter, SingleNodeSingleWriter),
        ("ReadOnlyMany", MultiNodeReaderOnly, MultiNodeReaderOnly),
        ("ReadWriteMany", MultiNodeMultiWriter, MultiNodeMultiWriter),
    ] {
        let modes = [mode.to_owned(), "ReadWriteMany".to_owned()];
        assert_eq!((access_mode(&modes, false), access_mode(&modes, true)), (old, new), "{mode}");
        assert_eq!(is_for_one_pod(&volume("", mode, false).0), mode == "ReadWriteOncePod");
    }
    assert_eq!(access_mode(&[], false), SingleNodeWriter);
}

#[test]
fn a_driver_without_an_object_has_the_defaults_but_no_volumes_in_pods() {
    let (none, empty) = (driver_rules(None), rules(json!({})));
    assert_eq!(none, empty);
    assert!(none.attach_required && none.is_persistent && !none.is_ephemeral && !none.republish);
    let all = rules(json!({
        "attachRequired": false, "podInfoOnMount": true, "fsGroupPolicy": "File", "requiresRepublish": true,
        "tokenRequests": [{ "audience": "a", "expirationSeconds": 600 }], "volumeLifecycleModes": ["Ephemeral"],
        "serviceAccountTokenInSecrets": true, "seLinuxMount": true,
    }));
    assert!(all.selinux_mount && !none.selinux_mount);
    assert_eq!((all.attach_required, all.pod_info, all.republish, all.tokens_in_secrets), (false, true, true, true));
    assert_eq!((all.group_policy, all.tokens.as_slice()), (GroupPolicy::File, &[("a".to_owned(), Some(600))][..]));
    let (_, csi) = volume("", "ReadWriteOnce", false);
    let inline = Csi { is_inline: true, ..csi.clone() };
    assert_eq!(check_lifecycle(&inline, &all), Ok(()));
    let refused = |mode: &str| Err(format!("volume mode {mode:?} not supported by driver d"));
    assert_eq!(
        (check_lifecycle(&csi, &all), check_lifecycle(&inline, &none)),
        (refused("Persistent"), refused("Ephemeral"))
    );
}

#[test]
fn a_driver_is_asked_again_as_often_as_its_object_says_and_never_more_often_than_every_ten_seconds() {
    let of = |seconds: Value| rules(json!({ "nodeAllocatableUpdatePeriodSeconds": seconds })).update_period;
    let found = [json!(null), json!(0), json!(-1), json!(3), json!(10), json!(600)].map(of);
    let wanted = [None, None, None, Some(10), Some(10), Some(600)].map(|s: Option<u64>| s.map(Duration::from_secs));
    assert_eq!((found, driver_rules(None).update_period), (wanted, None));
}

#[test]
fn a_volume_is_given_to_the_group_as_its_driver_says() {
    let all = [GroupPolicy::None, GroupPolicy::File, GroupPolicy::ReadWriteOnceWithFsType];
    for ((fs, mode, read_only), want) in [
        (("ext4", "ReadWriteOnce", false), [false, true, true]),
        (("ext4", "ReadWriteOncePod", false), [false, true, true]),
        (("ext4", "ReadWriteMany", false), [false, true, false]),
        (("", "ReadWriteOnce", false), [false, true, false]),
        (("ext4", "ReadWriteOnce", true), [false, false, false]),
    ] {
        let (volume, csi) = volume(fs, mode, read_only);
        assert_eq!(all.map(|policy| gives_to_group(&volume, &csi, policy)), want, "{fs} {mode} {read_only}");
        let inline = Csi { is_inline: true, ..csi };
        assert_eq!(gives_to_group(&volume, &inline, all[2]), !fs.is_empty() && !read_only);
    }
}

#[test]
fn the_driver_is_told_of_the_pod_when_it_wants_to_be() {
    let (_, csi) = volume("", "ReadWriteOnce", false);
    let pod = pod(json!({ "containers": [], "serviceAccountName": "robot" }));
    let attributes = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
    assert_eq!(publish_context(&csi, &rules(json!({})), &pod, None), attributes);
    let told = publish_context(&csi, &rules(json!({ "podInfoOnMount": true })), &pod, Some("{}".into()));
    let wanted = [
        ("a", "1"),
        ("csi.storage.k8s.io/ephemeral", "false"),
        ("csi.storage.k8s.io/pod.name", "web"),
        ("csi.storage.k8s.io/pod.namespace", "shop"),
        ("csi.storage.k8s.io/pod.uid", "u1"),
        ("csi.storage.k8s.io/serviceAccount.name", "robot"),
        ("csi.storage.k8s.io/serviceAccount.tokens", "{}"),
    ];
    assert_eq!(told.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect::<Vec<_>>(), wanted);
}

#[test]
fn files_are_those_of_a_kubelet_and_can_be_read_again() {
    let (volume, csi) = volume("", "ReadWriteOnce", false);
    assert_eq!(
        String::from_utf8(data::of_stage(&csi, "")).unwrap(),
        "{\"driverName\":\"d\",\"volumeHandle\":\"h1\"}\n"
    );
    // printf h1dn1 | sha256sum
    let attachment = "csi-366daf1c53e66e8da79774464eed1518e1572b633ff322788603d1c95665bb37";
    assert_eq!(attachment_name("h1", "d", "n1"), attachment);
    let text = format!(
        "{{\"attachmentID\":{attachment:?},\"driverName\":\"d\",\"nodeName\":\"n1\",\"specVolID\":\"pv1\",\"volumeHandle\":\"h1\",\"volumeLifecycleMode\":\"Persistent\"}}\n"
    );
    let file = data::of_publish(&volume, &csi, "n1", "");
    assert_eq!(String::from_utf8(file.clone()).unwrap(), text);
    let read = data::read(&file).unwrap();
    assert_eq!((read.driver.as_str(), read.handle.as_str(), read.is_inline), ("d", "h1", false));
    let inline = Csi { is_inline: true, ..csi };
    assert!(data::read(&data::of_publish(&volume, &inline, "n1", "")).unwrap().is_inline);
    let context = "system_u:object_r:container_file_t:s0:c1,c2";
    for file in [data::of_stage(&csi_of(&volume), context), data::of_publish(&volume, &csi_of(&volume), "n1", context)]
    {
        assert!(String::from_utf8_lossy(&file).contains(&format!("\"seLinuxMountContext\":{context:?}")));
        assert_eq!(data::read(&file).unwrap().context, context);
    }
    for bad in [
        "",
        "{",
        "[]",
        "{\"driverName\":\"d\"}",
        "{\"driverName\":\"\",\"volumeHandle\":\"h\"}",
        "{\"driverName\":1,\"volumeHandle\":\"h\"}",
    ] {
        assert!(data::read(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn a_volume_is_attached_when_node_and_attachment_say_so() {
    let node = |in_use: Value, attached: Value| -> Node {
        serde_json::from_value(json!({ "status": { "volumesInUse": in_use, "volumesAttached": attached } })).unwrap()
    };
    let there = json!([{ "name": "v", "devicePath": "" }]);
    let not_told = Err("volume v is not yet in node's status".to_owned());
    let not_attached = Err("Volume not attached according to node status".to_owned());
    for (node, want) in [
        (Some(node(json!(["v"]), there.clone())), Ok(())),
        (Some(node(json!([]), there)), not_told.clone()),
        (Some(node(json!(["v"]), json!([]))), not_attached),
        (None, not_told),
    ] {
        assert_eq!(by_node(node.as_ref(), "v"), want);
    }
    let attachment = |meta: Value, status: Value| -> VolumeAttachment {
        let spec = json!({ "attacher": "d", "nodeName": "n", "source": {} });
        serde_json::from_value(json!({ "metadata": meta, "spec": spec, "status": status })).unwrap()
    };
    let error = |code: Value| json!({ "attached": false, "attachError": { "message": "no", "errorCode": code } });
    for (found, want) in [
        (
            attachment(json!({}), json!({ "attached": true, "attachmentMetadata": { "k": "v" } })),
            Attachment::Done(BTreeMap::from([("k".into(), "v".into())])),
        ),
        (
            attachment(json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }), json!({ "attached": true })),
            Attachment::Failed("volume attachment is being deleted".into()),
        ),
        (attachment(json!({}), error(json!(13))), Attachment::Failed("no".into())),
        (attachment(json!({}), error(json!(8))), Attachment::Exhausted("no".into())),
        (attachment(json!({}), json!(null)), Attachment::Waits("its VolumeAttachment is not attached yet".into())),
    ] {
        assert_eq!(by_attachment(Some(&found)), want);
    }
    assert!(matches!(by_attachment(None), Attachment::Waits(_)));
}

#[test]
fn an_uncertain_mount_is_not_forgotten() {
    use CsiOutcome::{Final, Transient, Uncertain};
    for (before, error, want) in [
        (Mount::Absent, Final, Mount::Absent),
        (Mount::Absent, Uncertain, Mount::Uncertain),
        (Mount::Absent, Transient, Mount::Absent),
        (Mount::Uncertain, Final, Mount::Absent),
        (Mount::Uncertain, Uncertain, Mount::Uncertain),
        (Mount::Uncertain, Transient, Mount::Uncertain),
        (Mount::Present, Final, Mount::Present),
        (Mount::Present, Uncertain, Mount::Present),
        (Mount::Present, Transient, Mount::Present),
    ] {
        assert_eq!(after_failure(before, error, false), want, "{before:?} {error:?}");
        let found = if before == Mount::Uncertain { Mount::Uncertain } else { want };
        assert_eq!(after_failure(before, error, true), found, "found: {before:?} {error:?}");
    }
}

#[test]
fn pauses_double_up_to_two_minutes_and_two_seconds() {
    let (mut backoff, mut now, mut waits) = (Backoff::default(), Duration::ZERO, Vec::new());
    for _ in 0..10 {
        assert_eq!(backoff.wait(now), Duration::ZERO);
        backoff.failed(now);
        waits.push(backoff.wait(now).as_millis());
        now += backoff.wait(now);
    }
    assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16000, 32000, 64000, 122_000, 122_000]);
    backoff.reset();
    assert_eq!(backoff, Backoff::default());
}
