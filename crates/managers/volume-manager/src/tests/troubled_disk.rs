//! A disk that is full, or can only be read: what each kind of volume makes of it, and that it goes on afterwards.

use std::path::Path;
use std::sync::Arc;

use fakes::files::{Errno, FileTrouble};
use model::core::Pod;
use ports::host::FileKind;
use serde_json::{Value, json};

use super::cluster::{Cluster, pod_of, pod_with_devices, secs, spawn, with_cluster};

/// A kind of volume.
struct Row {
    kind: &'static str,
    /// The volume of the pod; `Null`: a raw one of the claim.
    volume: fn(&Cluster) -> Value,
    /// Its name in events.
    named: &'static str,
    /// Something has to be taken away here, by this node itself.
    is_taken: bool,
}

fn claimed(c: &Cluster, spec: Value) -> Value {
    c.claim("a", spec);
    json!({ "persistentVolumeClaim": { "claimName": "a" } })
}

fn rows() -> Vec<Row> {
    let own = |kind, volume| Row { kind, volume, named: "v", is_taken: true };
    let of_claim = |kind, volume, is_taken| Row { kind, volume, named: "pv-a", is_taken };
    vec![
        own("emptyDir", |_| json!({ "emptyDir": {} })),
        own("emptyDir in memory", |_| json!({ "emptyDir": { "medium": "Memory" } })),
        own("configMap", |_| json!({ "configMap": { "name": "cm", "defaultMode": 0o644 } })),
        own("secret", |_| json!({ "secret": { "secretName": "s", "defaultMode": 0o644 } })),
        own(
            "projected",
            |_| json!({ "projected": { "defaultMode": 0o644, "sources": [{ "serviceAccountToken": { "path": "t" } }] } }),
        ),
        own("downwardAPI", |_| {
            let item = json!({ "path": "n", "fieldRef": { "fieldPath": "metadata.name" } });
            json!({ "downwardAPI": { "defaultMode": 0o644, "items": [item] } })
        }),
        Row {
            is_taken: false,
            ..own(
                "hostPath",
                |c| json!({ "hostPath": { "path": c.host.path("new").to_str(), "type": "DirectoryOrCreate" } }),
            )
        },
        own("nfs", |_| json!({ "nfs": { "server": "srv", "path": "/a" } })),
        of_claim(
            "local directory",
            |c| claimed(c, json!({ "csi": null, "local": { "path": c.host.path("disk").to_str() } })),
            true,
        ),
        of_claim("local disk", |c| claimed(c, json!({ "csi": null, "local": { "path": "/dev/sdx" } })), true),
        of_claim("csi", |c| claimed(c, json!({})), false),
        of_claim(
            "raw csi",
            |c| {
                claimed(c, json!({ "volumeMode": "Block" }));
                Value::Null
            },
            false,
        ),
    ]
}

fn pod(c: &Cluster, row: &Row) -> Arc<Pod> {
    match (row.volume)(c) {
        Value::Null => pod_with_devices("u1", &["a"]),
        mut volume => {
            volume["name"] = json!("v");
            pod_of("u1", vec![volume], json!({ "fsGroup": 7 }))
        }
    }
}

#[test]
fn every_kind_says_what_is_wrong_with_the_disk_loses_nothing_and_goes_on() {
    for (errno, words) in [(Errno::NoSpc, "No space left on device"), (Errno::RoFs, "Read-only file system")] {
        for row in rows() {
            let what = format!("{} with {words}", row.kind);
            with_cluster(async |c| {
                c.bench.objects.put_map("cm", json!({ "k": "v" }));
                c.bench.objects.put_secret("s", json!({ "k": "dQ==" }));
                c.host.write("disk/file", "of the user");
                c.host.dir("/dev");
                c.host.disk.special(Path::new("/dev/sdx"), FileKind::BlockDevice);
                let pod = pod(&c, &row);
                let trouble = || c.host.disk.trouble(&c.host.path(""), FileTrouble::FailWrites(errno));
                trouble();
                let waits = spawn(&c, &pod);
                secs(5).await;
                let told = c.bench.told();
                let is_clear = |line: &String| {
                    let begins = line.starts_with("Warning FailedMount: MountVolume.")
                        || line.starts_with("Warning FailedMapVolume: MapVolume.");
                    begins && line.contains(&format!("for volume \"{}\"", row.named)) && line.contains(words)
                };
                assert!(told.len() >= 3 && told.iter().all(is_clear), "{what}: {told:?}");
                let e = waits.await.unwrap().unwrap_err();
                assert!(
                    e.late && e.message.starts_with("unmounted volumes=[v") && e.message.contains(words),
                    "{what}: {e}"
                );
                assert_eq!(c.csi.calls(), [""; 0], "{what}: what cannot be written down is not begun");
                c.host.disk.calm();
                secs(130).await;
                c.mount(&pod).await.unwrap_or_else(|e| panic!("{what}: {e}"));
                if row.is_taken {
                    trouble();
                    let e = c.unmount("u1").await.unwrap_err();
                    assert!(e.message.starts_with("mounted volumes=[") && e.message.contains(words), "{what}: {e}");
                    c.host.disk.calm();
                }
                c.unmount("u1").await.unwrap_or_else(|e| panic!("{what}: {e}"));
                secs(200).await;
                c.remove("u1").await.unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(!c.host.exists("pods/u1") && c.is_clean() && c.csi.is_idle(), "{what}");
                assert!(!c.host.exists("plugins/kubernetes.io/local-volume/mounts/pv-a"), "{what}");
                assert_eq!((c.host.read("disk/file"), c.csi.wrong()), ("of the user".to_owned(), vec![]), "{what}");
            });
        }
    }
}
