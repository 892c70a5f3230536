//! Local volumes on disks of the node, and volumes of kinds that drivers took over.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::volume::{ListVolumes, MappedDevice};
use metrics::volumes::{CSI_OPERATION, STORAGE_OPERATION};
use model::core::PersistentVolumeClaim;
use model::event::EventObject;
use ports::host::{FileKind, Mounter, ProgramEnd};
use serde_json::{Value, json};

use super::cluster::{Cluster, pod_of, pod_with, pod_with_devices, secs, with_cluster};

const MOUNTED: &str = "plugins/kubernetes.io/local-volume/mounts/pv-a";
const DISK: &str = "/dev/sdx";

fn disk(c: &Cluster) {
    c.host.dir("/dev");
    c.host.disk.special(Path::new(DISK), FileKind::BlockDevice);
}

fn local(c: &Cluster, spec: Value) {
    let mut spec = spec;
    spec["csi"] = Value::Null;
    spec["local"] = json!({ "path": DISK, "fsType": "xfs" });
    c.claim("a", spec);
}

#[test]
fn a_disk_is_formatted_mounted_once_for_all_pods_and_unmounted_after_the_last() {
    with_cluster(async |mut c| {
        disk(&c);
        local(&c, json!({}));
        let bound = |uid: &str| format!("pods/{uid}/volumes/kubernetes.io~local-volume/pv-a");
        for uid in ["u1", "u2"] {
            let mounted = c.mount(&pod_with(uid, &["a"])).await.unwrap();
            assert_eq!(mounted.volumes["v-a"].host_path, c.host.path(bound(uid)));
        }
        let rows = c.bench.wiring.ask(ListVolumes).await.unwrap();
        let shown: Vec<_> = rows.iter().map(|row| (row.kind.as_str(), row.path.clone())).collect();
        let wanted = ["u1", "u2"].map(|uid| ("local", Some(c.host.path(bound(uid)))));
        assert_eq!(shown, wanted);
        assert_eq!(c.host.disk.format_of(Path::new(DISK)).as_deref(), Some("xfs"));
        assert!(c.host.is_mounted(MOUNTED));
        assert_eq!(c.in_use(), Some(vec![]), "nobody attaches it");
        c.restart().await;
        secs(70).await;
        c.unmount("u1").await.unwrap();
        secs(70).await;
        assert!(c.host.is_mounted(MOUNTED) && c.host.is_mounted(bound("u2")), "another pod has it");
        assert_eq!(c.in_use(), Some(vec![]), "nor is it taken for attached after a restart");
        c.unmount("u2").await.unwrap();
        secs(70).await;
        assert!(!c.host.exists(MOUNTED) && !c.host.exists(bound("u2")));
    });
}

#[test]
fn a_disk_that_is_mounted_elsewhere_as_well_stays_mounted() {
    with_cluster(async |c| {
        disk(&c);
        local(&c, json!({}));
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        c.host.dir("copy");
        c.host.disk.mount_again(&c.host.path(MOUNTED), &c.host.path("copy"));
        c.unmount("u1").await.unwrap();
        secs(100).await;
        assert!(c.host.is_mounted(MOUNTED), "whoever mounted it would lose it");
        c.host.disk.unmount(&c.host.path("copy")).unwrap();
        secs(200).await;
        assert!(!c.host.exists(MOUNTED));
    });
}

#[test]
fn a_disk_that_other_pods_have_keeps_its_group_and_users_are_told() {
    with_cluster(async |c| {
        disk(&c);
        local(&c, json!({}));
        let pod = |uid: &str, group: u32| {
            let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": "a" } });
            pod_of(uid, vec![volume], json!({ "fsGroup": group }))
        };
        let group = || c.host.stat(MOUNTED).gid;
        c.mount(&pod("u1", 7)).await.unwrap();
        assert_eq!((group(), c.bench.told()), (7, vec![]));
        c.mount(&pod("u2", 8)).await.unwrap();
        let event = "Warning AlreadyMountedVolume: The requested fsGroup is 8, but the volume pv-a has GID 7. The volume may not be shareable.";
        assert_eq!((group(), c.bench.told()), (7, vec![event.to_owned()]));
        c.mount(&pod("u3", 7)).await.unwrap();
        assert_eq!((group(), c.bench.told()), (7, vec![]), "it has the group that it wants");
    });
}

#[test]
fn a_disk_that_became_larger_grows_at_the_next_mount() {
    with_cluster(async |c| {
        disk(&c);
        local(&c, json!({ "capacity": { "storage": "2Gi" } }));
        let tries = AtomicUsize::new(0);
        c.host.disk.play_programs(move |_, _| {
            let is_first = tries.fetch_add(1, Ordering::Relaxed) == 0;
            ProgramEnd { code: Some(i32::from(is_first)), words: "no room".to_owned() }
        });
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        let call = format!("xfs_growfs -d {}", c.host.path(MOUNTED).display());
        assert_eq!(c.host.disk.program_calls(), [call.clone(), call]);
        let versions = c.bench.events.all().into_iter().filter_map(|event| match event.object {
            EventObject::Claim { resource_version, .. } => Some(resource_version),
            _ => None,
        });
        assert!(versions.collect::<Vec<_>>().iter().all(|version| !version.is_empty()));
        let done = "Normal FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume \"pv-a\" n1";
        let failed = "Warning FailedMount: MountVolume.Setup failed while expanding volume for volume \"pv-a\" : resize of device /dev/sdx failed: exit status 1. xfs_growfs output: no room";
        assert_eq!(c.bench.told(), [failed, done, done], "of the pod, and of pod and claim");
        let claim: PersistentVolumeClaim = c.api.read(Some("default"), "a").unwrap();
        assert_eq!(claim.status.unwrap().capacity.unwrap()["storage"].0, "2Gi");
        c.mount(&pod_with("u2", &["a"])).await.unwrap();
        assert_eq!(c.host.disk.program_calls(), [""; 0], "it has grown");
    });
}

#[test]
fn the_claim_of_what_has_no_file_system_of_its_own_is_told_that_it_grew() {
    for (mode, path) in [("Filesystem", "/kubelet/disk"), ("Block", DISK)] {
        with_cluster(async |c| {
            disk(&c);
            c.host.dir("disk");
            let spec =
                json!({ "csi": null, "local": { "path": path }, "volumeMode": mode, "capacity": { "storage": "2Gi" } });
            c.claim("a", spec);
            let pod = if mode == "Block" { pod_with_devices("u1", &["a"]) } else { pod_with("u1", &["a"]) };
            c.mount(&pod).await.unwrap();
            let claim: PersistentVolumeClaim = c.api.read(Some("default"), "a").unwrap();
            assert_eq!(claim.status.unwrap().capacity.unwrap()["storage"].0, "2Gi", "{mode}");
            assert_eq!(c.host.disk.program_calls(), [""; 0], "{mode}");
            let done =
                "Normal FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume \"pv-a\" n1";
            assert_eq!(c.bench.told().iter().filter(|line| *line == done).count(), 2, "{mode}");
        });
    }
}

#[test]
fn a_blank_disk_is_not_formatted_for_a_reader() {
    with_cluster(async |c| {
        disk(&c);
        local(&c, json!({}));
        let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": "a", "readOnly": true } });
        c.mount(&pod_of("u1", vec![volume], json!({}))).await.unwrap_err();
        let told = c.bench.told();
        let words =
            "Warning FailedMount: MountVolume.MountDevice failed for volume \"pv-a\" : local: failed to mount device";
        assert!(told[0].starts_with(words), "{told:?}");
        assert_eq!(c.host.disk.format_of(Path::new(DISK)), None);
        assert!(!c.host.exists(MOUNTED));
    });
}

#[test]
fn a_disk_is_given_to_a_pod_as_it_is() {
    with_cluster(async |mut c| {
        disk(&c);
        local(&c, json!({ "volumeMode": "Block" }));
        let mounted = c.mount(&pod_with_devices("u1", &["a"])).await.unwrap();
        let link = c.host.path("pods/u1/volumeDevices/kubernetes.io~local-volume/pv-a");
        assert_eq!(mounted.devices["v-a"], MappedDevice { host_path: link.clone(), read_only: false });
        assert_eq!(c.host.link_of(&link), DISK);
        let bound = c.host.path("plugins/kubernetes.io~local-volume/volumeDevices/pv-a/u1");
        assert_eq!(c.host.disk.held_devices(), std::slice::from_ref(&bound));
        assert_eq!(c.bench.told().len(), 2);
        let rows = c.bench.wiring.ask(ListVolumes).await.unwrap();
        let shown: Vec<_> = rows.iter().map(|row| (row.kind.as_str(), row.raw, row.path.clone())).collect();
        assert_eq!(shown, [("local", true, Some(bound))]);
        c.restart().await;
        c.mount(&pod_with_devices("u1", &["a"])).await.unwrap();
        assert_eq!(c.bench.told(), [""; 0], "it was mapped");
        c.remove("u1").await.unwrap();
        assert!(!c.host.exists("pods/u1") && c.host.disk.held_devices().is_empty());
        assert_eq!(c.host.names("plugins/kubernetes.io~local-volume/volumeDevices"), [""; 0]);
        assert!(c.host.exists(DISK));
    });
}

#[test]
fn a_directory_is_no_device() {
    with_cluster(async |c| {
        c.host.dir(DISK);
        local(&c, json!({ "volumeMode": "Block" }));
        c.mount(&pod_with_devices("u1", &["a"])).await.unwrap_err();
        let told = c.bench.told();
        let words = "Warning FailedMapVolume: MapVolume.MapBlockVolume failed for volume \"pv-a\" : ";
        assert!(told[0].starts_with(words), "{told:?}");
        c.unmount("u1").await.unwrap();
        assert_eq!(c.host.names("pods/u1/volumeDevices/kubernetes.io~local-volume"), [""; 0]);
    });
}

#[test]
fn a_file_among_the_links_of_devices_is_nobodys_to_remove() {
    with_cluster(async |c| {
        let file = "pods/u1/volumeDevices/kubernetes.io~csi/pv-a";
        c.host.write(file, "content");
        assert!(c.unmount("u1").await.is_err() && c.remove("u1").await.is_err());
        assert_eq!(c.host.read(file), "content");
    });
}

#[test]
fn what_a_kubelet_of_another_kind_mapped_is_not_touched() {
    with_cluster(async |c| {
        c.host.dir("pods/u1/volumeDevices/kubernetes.io~rbd");
        c.host.link("/dev/sdy", "pods/u1/volumeDevices/kubernetes.io~rbd/pv-i");
        let e = c.unmount("u1").await.unwrap_err();
        assert!(e.message.contains("cannot unmap volumes of that kind"), "{e}");
        assert!(c.remove("u1").await.is_err());
        assert_eq!(c.host.link_of("pods/u1/volumeDevices/kubernetes.io~rbd/pv-i"), "/dev/sdy");
    });
}

#[test]
fn a_volume_of_a_kind_that_a_driver_took_over_goes_to_the_driver() {
    with_cluster(async |c| {
        let driver = "disk.csi.azure.com";
        let object = json!({ "metadata": { "name": driver }, "spec": { "attachRequired": false } });
        c.api.put_json(&format!("/apis/storage.k8s.io/v1/csidrivers/{driver}"), object);
        let disk = json!({ "diskName": "d", "diskURI": "/subscriptions/s/d", "kind": "Managed" });
        let pod = pod_of("u1", vec![json!({ "name": "v", "azureDisk": disk })], json!({}));
        let mounted = c.mount(&pod).await.unwrap();
        let dir = "pods/u1/volumes/kubernetes.io~csi/~subscriptions~s~d";
        assert_eq!(mounted.volumes["v"].host_path, c.host.path(format!("{dir}/mount")));
        assert!(c.host.read(format!("{dir}/vol_data.json")).contains("\"specVolID\":\"/subscriptions/s/d\""));
        c.unmount("u1").await.unwrap();
        secs(1).await;
        let counted = |method: &str, is_migrated: &str| {
            let method = format!("/csi.v1.Node/{method}");
            CSI_OPERATION.with_label_values(&[driver, "OK", &method, is_migrated]).get_sample_count() > 0
        };
        for (method, is_migrated) in
            [("NodeStageVolume", true), ("NodePublishVolume", true), ("NodeUnpublishVolume", false)]
        {
            let found = ["true", "false"].map(|label| counted(method, label));
            assert_eq!(found, [is_migrated, !is_migrated], "{method}");
        }
        let plugin = format!("kubernetes.io/csi:{driver}");
        let mounts = STORAGE_OPERATION.with_label_values(&["true", "volume_mount", "success", &plugin]);
        assert_eq!(mounts.get_sample_count(), 1);
        let calls = ["stage", "publish", "unpublish", "unstage"].map(|call| format!("{call} /subscriptions/s/d"));
        assert_eq!(c.csi.calls(), calls);
        assert!(c.csi.is_idle() && c.host.names(format!("plugins/kubernetes.io/csi/{driver}")).is_empty());
        let shared = json!({ "diskName": "d", "diskURI": "u", "kind": "Shared" });
        let e = c.mount(&pod_of("u2", vec![json!({ "name": "v", "azureDisk": shared })], json!({}))).await.unwrap_err();
        assert!(e.message.contains("failed to translate in-tree pv to CSI: kind(Shared)"), "{e}");
    });
}
