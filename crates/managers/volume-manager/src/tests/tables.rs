//! Which volumes, of what kind.

use serde_json::{Value, json};

use super::rig::with_spec;
use crate::spec::{Kind, Medium, tmpfs_size, used_volumes};

fn kinds(spec: Value) -> Vec<(String, Kind)> {
    used_volumes(&with_spec("u", spec)).into_iter().map(|(v, k)| (v.name.clone(), k)).collect()
}

fn projected(plugin: &'static str, medium: Medium) -> Kind {
    Kind::Projected { plugin, medium }
}

#[test]
fn only_volumes_that_a_container_mounts_are_set_up() {
    let all = kinds(json!({
        "volumes": [{"name": "idle", "persistentVolumeClaim": {"claimName": "missing"}}, {"name": "a"}, {"name": "i"}, {"name": "e"}, {"name": "d", "emptyDir": {}}],
        "initContainers": [{"name": "i", "volumeMounts": [{"name": "i", "mountPath": "/"}]}],
        "containers": [{"name": "c", "volumeMounts": [{"name": "a", "mountPath": "/"}], "volumeDevices": [{"name": "d", "devicePath": "/dev/x"}]}],
        "ephemeralContainers": [{"name": "dbg", "volumeMounts": [{"name": "e", "mountPath": "/"}]}],
    }));
    assert_eq!(all.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(), ["a", "i", "e", "d"]);
}

#[test]
fn kind_table() {
    let huge = json!({"requests": {"hugepages-2Mi": "4Mi"}, "limits": {"hugepages-2Mi": "4Mi"}});
    let both = json!({"requests": {"hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi"}});
    let refused = |t: &str| Kind::EmptyDir(Medium::Refused(t.into()));
    for (source, resources, kind) in [
        (json!({}), json!({}), Kind::EmptyDir(Medium::Disk)),
        (json!({"emptyDir": {}}), json!({}), Kind::EmptyDir(Medium::Disk)),
        (json!({"emptyDir": {"medium": "Memory"}}), json!({}), Kind::EmptyDir(Medium::Memory)),
        (json!({"emptyDir": {"medium": "Disk"}}), json!({}), refused("unknown storage medium \"Disk\"")),
        (json!({"emptyDir": {"medium": "HugePages"}}), huge.clone(), Kind::EmptyDir(Medium::HugePages(2 << 20))),
        (json!({"emptyDir": {"medium": "HugePages-2Mi"}}), huge.clone(), Kind::EmptyDir(Medium::HugePages(2 << 20))),
        (
            json!({"emptyDir": {"medium": "HugePages-1Gi"}}),
            huge.clone(),
            refused("medium \"HugePages-1Gi\", but no container requests pages of that size"),
        ),
        (
            json!({"emptyDir": {"medium": "HugePages"}}),
            json!({}),
            refused("huge pages storage requested, but no container requests huge pages"),
        ),
        (
            json!({"emptyDir": {"medium": "HugePages"}}),
            both,
            refused("medium \"HugePages\" is not unique: containers request several page sizes"),
        ),
        (json!({"emptyDir": {"medium": "HugePages2Mi"}}), huge, refused("unknown storage medium \"HugePages2Mi\"")),
        (
            json!({"hostPath": {"path": "/x", "type": "File"}}),
            json!({}),
            Kind::HostPath { path: "/x".into(), check: "File".into() },
        ),
        (json!({"hostPath": {"path": "/x"}}), json!({}), Kind::HostPath { path: "/x".into(), check: String::new() }),
        (json!({"image": {"reference": "a"}}), json!({}), Kind::Image),
        (json!({"configMap": {"name": "c"}}), json!({}), projected("kubernetes.io~configmap", Medium::Disk)),
        (json!({"secret": {"secretName": "s"}}), json!({}), projected("kubernetes.io~secret", Medium::Memory)),
        (json!({"downwardAPI": {}}), json!({}), projected("kubernetes.io~downward-api", Medium::Memory)),
        (json!({"projected": {}}), json!({}), projected("kubernetes.io~projected", Medium::Memory)),
        (json!({"csi": {"driver": "d"}}), json!({}), Kind::Persistent),
        (json!({"cinder": {"volumeID": "c"}}), json!({}), Kind::Persistent),
        (json!({"nfs": {"server": "s", "path": "/"}}), json!({}), Kind::Persistent),
        (json!({"cephfs": {"monitors": []}}), json!({}), Kind::Unsupported("cephfs")),
    ] {
        let mut volume = source.clone();
        volume["name"] = json!("v");
        let mounts = json!([{"name": "v", "mountPath": "/"}]);
        let got = kinds(
            json!({"volumes": [volume], "containers": [{"name": "c", "resources": resources, "volumeMounts": mounts}]}),
        );
        assert_eq!(got, [("v".to_owned(), kind)], "{source}");
    }
}

#[test]
fn a_tmpfs_is_as_large_as_the_least_of_its_limits() {
    const GI: i64 = 1 << 30;
    for (name, limit, size_limit, allocatable, expected) in [
        ("node only", None, None, 8 * GI, Some(8 * GI)),
        ("pod limit", Some("1Gi"), None, 8 * GI, Some(GI)),
        ("volume above the pod", Some("1Gi"), Some("2Gi"), 8 * GI, Some(GI)),
        ("volume below the pod", Some("4Gi"), Some("2Gi"), 8 * GI, Some(2 * GI)),
        ("zero counts as nothing", None, Some("0"), 8 * GI, Some(8 * GI)),
        ("nothing known", None, None, 0, None),
    ] {
        let resources = limit.map_or(json!({}), |l| json!({"limits": {"memory": l}}));
        let pod = with_spec(
            "u",
            json!({
                "volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": size_limit}}],
                "containers": [{"name": "c", "resources": resources}],
            }),
        );
        let volume = &pod.spec.as_ref().unwrap().volumes.as_ref().unwrap()[0];
        assert_eq!(tmpfs_size(&pod, volume, allocatable), expected.map(|b: i64| u64::try_from(b).unwrap()), "{name}");
    }
}
