//! Disks that the host reaches over a network: names, directories and calls, which are a kubelet's.

use std::collections::BTreeMap;

use model::PodUid;
use model::core::Volume;
use serde_json::{Value, json};

use super::persistent;
use crate::fc::Id;
use crate::iscsi::{self, Config, Failure, Iscsi};
use crate::lun::{Lun, attach_name_of};
use crate::source::{Source, of_inline, of_persistent_volume};

fn lun(spec: &Value) -> Lun {
    match of_persistent_volume(&persistent(spec.clone(), json!({})), false).unwrap().source {
        Source::Lun(lun) => lun,
        other => panic!("{other:?}"),
    }
}

fn iscsi(spec: &Value) -> Iscsi {
    match lun(&json!({ "iscsi": spec })) {
        Lun::Iscsi(disk) => disk,
        Lun::Fc(disk) => panic!("{disk:?}"),
    }
}

fn target(more: &Value) -> Value {
    let mut spec = json!({ "targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:disk", "lun": 3 });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

#[test]
fn disks_have_a_kubelets_names_and_directories() {
    let of = "iqn.2001-04.com.example:disk";
    for (spec, dirs, attach_name) in [
        (
            json!({ "iscsi": target(&json!({})) }),
            vec!["iface-default".to_owned(), format!("10.0.0.1:3260-{of}-lun-3")],
            format!("kubernetes.io/iscsi/10.0.0.1:{of}:3"),
        ),
        (
            json!({ "iscsi": target(&json!({ "targetPortal": "[fd00::1]:860", "iscsiInterface": "be2iscsi" })) }),
            vec!["iface-be2iscsi".to_owned(), format!("[fd00::1]:860-{of}-lun-3")],
            format!("kubernetes.io/iscsi/[fd00::1]:860:{of}:3"),
        ),
        (
            json!({ "iscsi": target(&json!({ "initiatorName": "iqn.me" })) }),
            vec!["iface-10.0.0.1:3260:pv1".to_owned(), format!("10.0.0.1:3260-{of}-lun-3")],
            format!("kubernetes.io/iscsi/10.0.0.1:{of}:3"),
        ),
        (
            json!({ "fc": { "targetWWNs": ["50060e801049cfd1", "50060e801049cfd2"], "lun": 0 } }),
            vec!["50060e801049cfd1-50060e801049cfd2-lun-0".to_owned()],
            "kubernetes.io/fc/[50060e801049cfd1 50060e801049cfd2]:0".to_owned(),
        ),
        (
            json!({ "fc": { "wwids": ["3600508b400105e21", "ACME disk 7"] } }),
            vec!["3600508b400105e21-ACME_disk_7".to_owned()],
            "kubernetes.io/fc/[3600508b400105e21 ACME disk 7]".to_owned(),
        ),
    ] {
        let found = lun(&spec);
        assert_eq!((found.dirs(), found.attach_name()), (dirs, attach_name), "{spec}");
    }
    assert!(of_persistent_volume(&persistent(json!({ "fc": { "lun": 1 } }), json!({})), false).is_err());
}

#[test]
fn what_is_on_the_disk_alone_is_told_by_the_name_that_a_kubelet_would_find() {
    let of = "iqn.2001-04.com.example:disk";
    for (spec, name) in [
        (json!({ "iscsi": target(&json!({})) }), Some(format!("kubernetes.io/iscsi/10.0.0.1:3260:{of}:3"))),
        (json!({ "fc": { "targetWWNs": ["5006"], "lun": 0 } }), Some("kubernetes.io/fc/[5006]:0".to_owned())),
        (json!({ "fc": { "wwids": ["3600", "3601"] } }), Some("kubernetes.io/fc/[3600 3601]".to_owned())),
    ] {
        assert_eq!(attach_name_of(&lun(&spec).key()), name);
    }
    assert_eq!(attach_name_of("kubernetes.io/csi/d^h"), None);
    assert_eq!(attach_name_of("kubernetes.io/iscsi/nonsense"), None);
}

#[test]
fn a_disk_in_a_pod_has_the_secret_of_the_pods_namespace() {
    let volume: Volume = serde_json::from_value(json!({
        "name": "v",
        "iscsi": target(&json!({ "secretRef": { "name": "chap" }, "chapAuthSession": true, "readOnly": true })),
    }))
    .unwrap();
    let found = of_inline(&PodUid::from("u1"), "shop", &volume).unwrap().unwrap();
    let Source::Lun(Lun::Iscsi(disk)) = &found.source else { panic!("{found:?}") };
    assert_eq!((disk.secret.clone(), found.read_only), (Some((None, "chap".to_owned())), true));
    assert_eq!((disk.chap_session, disk.chap_discovery), (true, false));
    let none: Volume = serde_json::from_value(json!({ "name": "v", "fc": { "fsType": "xfs" } })).unwrap();
    of_inline(&PodUid::from("u1"), "shop", &none).unwrap().unwrap_err();
}

fn calls(steps: &[iscsi::Step]) -> Vec<String> {
    steps.iter().map(|step| step.arguments.join(" ")).collect()
}

#[test]
fn a_login_asks_the_portal_then_begins_the_session() {
    let disk = iscsi(&target(&json!({})));
    let steps = disk.login("10.0.0.1:3260", &BTreeMap::new());
    let discovery = "-m discoverydb -t sendtargets -p 10.0.0.1:3260 -I default";
    let node = "-m node -p 10.0.0.1:3260 -T iqn.2001-04.com.example:disk";
    let wanted = [
        format!("{discovery} -o new"),
        format!("{discovery} --discover"),
        format!("{node} -I default -o update -n node.session.scan -v manual"),
        format!("{node} -I default --login"),
        format!("{node} -o update -n node.startup -v manual"),
    ];
    assert_eq!(calls(&steps), wanted);
    let undone: Vec<_> = steps
        .iter()
        .map(|s| match &s.failure {
            Failure::Ignored => None,
            Failure::Ends(_, undo) => undo.as_ref().map(|u| u.join(" ")),
        })
        .collect();
    let record = "-m node -p 10.0.0.1:3260 -I default -T iqn.2001-04.com.example:disk -o delete".to_owned();
    assert_eq!(undone, [None, Some(format!("{discovery} -o delete")), None, Some(record), None]);
}

#[test]
fn names_and_passwords_are_set_before_they_are_asked_for_and_only_those_that_there_are() {
    let disk = iscsi(&target(&json!({ "chapAuthDiscovery": true, "chapAuthSession": true })));
    let secret: BTreeMap<String, String> = [
        ("discovery.sendtargets.auth.username", "me"),
        ("discovery.sendtargets.auth.password", "d-pw"),
        ("discovery.sendtargets.auth.password_in", ""),
        ("node.session.auth.username", "me too"),
        ("node.session.auth.password_in", "s-pw"),
        ("other", "x"),
    ]
    .map(|(k, v)| (k.to_owned(), v.to_owned()))
    .into();
    let set = |call: &String| call.split_once(" -o update -n ").map(|(_, rest)| rest.to_owned());
    let found: Vec<String> = calls(&disk.login("p:1", &secret)).iter().filter_map(set).collect();
    let wanted = [
        "discovery.sendtargets.auth.authmethod -v CHAP",
        "discovery.sendtargets.auth.username -v me",
        "discovery.sendtargets.auth.password -v d-pw",
        "node.session.scan -v manual",
        "node.session.auth.authmethod -v CHAP",
        "node.session.auth.username -v me too",
        "node.session.auth.password_in -v s-pw",
        "node.startup -v manual",
    ];
    assert_eq!(found, wanted);
}

#[test]
fn an_interface_for_an_initiator_has_all_of_the_configured_one() {
    let disk = iscsi(&target(&json!({ "initiatorName": "iqn.me", "iscsiInterface": "iser" })));
    let shown = "# BEGIN RECORD 2.1\niface.iscsi_ifacename = iser\niface.transport_name = iser\niface.hwaddress = <empty>\n\
                 iface.initiatorname = <empty>\niface.mtu = 9000\n# END RECORD\n";
    let calls: Vec<String> = disk.clone_iface(shown).unwrap().iter().map(|c| c.join(" ")).collect();
    let on = "-m iface -I 10.0.0.1:3260:pv1 -o";
    let wanted = [
        format!("{on} new"),
        format!("{on} update -n iface.initiatorname -v iqn.me"),
        format!("{on} update -n iface.mtu -v 9000"),
        format!("{on} update -n iface.transport_name -v iser"),
    ];
    assert_eq!(calls, wanted);
    assert_eq!(disk.delete_iface().unwrap().join(" "), format!("{on} delete"));
    disk.clone_iface("iface.mtu = 9000 bytes\n").unwrap_err();
    assert_eq!(iscsi(&target(&json!({}))).delete_iface(), None);
    for (shown, transport) in
        [(shown, Some("iser")), ("iface.transport_name = <empty>\n", Some("tcp")), ("iface.mtu = 1\n", None)]
    {
        assert_eq!(iscsi::transport("i", shown).ok().as_deref(), transport);
    }
}

#[test]
fn a_disk_is_known_by_its_link() {
    let disk = iscsi(&target(&json!({})));
    let end = "iscsi-iqn.2001-04.com.example:disk-lun-3";
    let (tcp, pci) = (format!("ip-10.0.0.1:3260-{end}"), format!("pci-0000:03:00.2-ip-10.0.0.1:3260-{end}"));
    let (more, six) = (format!("{tcp}0"), format!("ip-fd00::1:860-{end}"));
    let names = [more.as_str(), &pci, &tcp, &six, "pci-0000:00:1f.2-ata-1"];
    for (portal, transport, link) in [
        ("10.0.0.1:3260", "tcp", Some(tcp.as_str())),
        ("10.0.0.1:3260", "be2iscsi", Some(&pci)),
        ("[fd00::1]:860", "tcp", Some(&six)),
        ("10.0.0.2:3260", "tcp", None),
    ] {
        assert_eq!(disk.link(portal, transport, names.into_iter()), link, "{portal} {transport}");
    }
}

#[test]
fn the_file_of_a_disk_is_a_kubelets() {
    let disk = iscsi(&target(&json!({ "initiatorName": "iqn.me", "portals": ["10.0.0.2", "10.0.0.1:3260"] })));
    let file: Value = serde_json::from_slice(&disk.file("pv1")).unwrap();
    let wanted = json!({
        "VolName": "pv1",
        "Portals": ["10.0.0.1:3260", "10.0.0.2:3260"],
        "Iqn": "iqn.2001-04.com.example:disk",
        "Lun": "3",
        "InitIface": "default",
        "Iface": "10.0.0.1:3260:pv1",
        "InitiatorName": "iqn.me",
        "MetricsProvider": null,
    });
    assert_eq!(file, wanted);
    let config = iscsi::read(&disk.file("pv1")).unwrap();
    let node = "-m node -p";
    let of = "-T iqn.2001-04.com.example:disk";
    let own = "-I 10.0.0.1:3260:pv1";
    let wanted = [
        format!("{node} 10.0.0.1:3260 {of} --logout {own}"),
        format!("{node} 10.0.0.1:3260 {of} -o delete {own}"),
        format!("{node} 10.0.0.2:3260 {of} --logout {own}"),
        format!("{node} 10.0.0.2:3260 {of} -o delete {own}"),
        format!("-m iface {own} -o delete"),
    ];
    assert_eq!(config.logout().iter().map(|c| c.join(" ")).collect::<Vec<_>>(), wanted);
    for nonsense in ["", "{}", r#"{"Portals":[],"Iqn":"i","Lun":"1"}"#, r#"{"Portals":["p"],"Iqn":"i","Lun":"x"}"#] {
        iscsi::read(nonsense.as_bytes()).unwrap_err();
    }
}

#[test]
fn a_directory_says_enough_to_let_a_disk_go() {
    let dir = "10.0.0.1:3260-iqn.2001-04.com.example:a-lun-b-lun-12";
    let config = iscsi::of_dirs("iface-default", dir).unwrap();
    let wanted = Config {
        portals: vec!["10.0.0.1:3260".to_owned()],
        iqn: "iqn.2001-04.com.example:a-lun-b".to_owned(),
        lun: 12,
        iface: Some("default".to_owned()),
        owns_iface: false,
    };
    assert_eq!(config, wanted);
    for nonsense in ["", "10.0.0.1:3260", "iqn.a-lun-1", "10.0.0.1:3260-iqn.a-lun-x", "p-other.a-lun-1"] {
        assert_eq!(iscsi::of_dirs("iface-default", nonsense), None, "{nonsense}");
    }
    for (other, shares) in [
        ("10.0.0.1:3260-iqn.2001-04.com.example:a-lun-b-lun-13", true),
        ("10.0.0.1:3260-iqn.2001-04.com.example:a-lun-bc-lun-13", false),
        ("10.0.0.1:326-iqn.2001-04.com.example:a-lun-b-lun-13", false),
    ] {
        assert_eq!(config.shares_session(other), shares, "{other}");
    }
}

#[test]
fn a_disk_by_fibre_channel_is_found_by_each_of_its_names() {
    let names = [
        "pci-0000:41:00.0-fc-0x50060e801049cfd1-lun-0",
        "fc-0x50060e801049cfd2-lun-0",
        "pci-0000:41:00.0-fc-0x50060e801049cfd1-lun-01",
        "scsi-3600508b400105e21",
        "scsi-ACME_disk_7",
        "scsi-ACME_disk_77",
    ];
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    for (id, found) in [
        (Id::Ports(ids(&["50060e801049cfd2", "50060e801049cfd1"]), 0), vec![names[1], names[0]]),
        (Id::Ports(ids(&["50060e801049cfd3"]), 0), vec![]),
        (Id::Wwids(ids(&["ACME disk 7", "3600508b400105e21"])), vec![names[4], names[3]]),
    ] {
        assert_eq!(id.matches(&names), found, "{id:?}");
    }
    assert_eq!(Id::of_dir("5006-5007-lun-1"), Some(Id::Ports(ids(&["5006", "5007"]), 1)));
    assert_eq!(Id::of_dir("3600"), Some(Id::Wwids(ids(&["3600"]))));
    for nonsense in ["", "-lun-1", "5006-lun-x"] {
        assert_eq!(Id::of_dir(nonsense), None, "{nonsense}");
    }
}
