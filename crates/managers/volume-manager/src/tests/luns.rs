//! Disks that the host reaches over a network, with programs and a kernel that the test plays.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use contract::volume::{ListVolumes, MappedDevice};
use fakes::MemFs;
use fakes::files::{Errno, FileTrouble};
use fakes::luns::{self, after, dir, disk, end, fc, file, session_dir, target};
use ports::host::{FileKind, HostFs, Mounter, ProgramEnd};
use serde_json::{Value, json};

use super::cluster::{Cluster, pod_of, pod_with, pod_with_devices, secs, with_cluster, with_selinux};
use super::mortal::Mortal;

const IQN: &str = luns::IQN;
const NAME: &str = "kubernetes.io/iscsi/10.0.0.1:iqn.2001-04.com.example:disks:3";
const DIR: &str = "plugins/kubernetes.io/iscsi/iface-default/10.0.0.1:3260-iqn.2001-04.com.example:disks-lun-3";
const RAW: &str =
    "plugins/kubernetes.io/iscsi/volumeDevices/iface-default/10.0.0.1:3260-iqn.2001-04.com.example:disks-lun-3";
const OF_POD: &str = "pods/u1/volumes/kubernetes.io~iscsi/pv-a";
const FC_DIR: &str = "plugins/kubernetes.io/fc/5006-5007-lun-0";
const FC_NAME: &str = "kubernetes.io/fc/[5006 5007]:0";

/// A node that the disk is attached to.
fn attached(c: &Cluster, name: &str) {
    c.node(&[name], &[name]);
}

fn iscsi(c: &Cluster, claim: &str, more: Value, spec: Value) {
    let mut iscsi = json!({ "targetPortal": "10.0.0.1", "iqn": IQN, "lun": 3, "fsType": "xfs" });
    iscsi.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut spec = spec;
    (spec["csi"], spec["iscsi"]) = (Value::Null, iscsi);
    c.claim(claim, spec);
}

/// A claim that is bound to a disk which is attached.
pub(super) fn claim(c: &Cluster, name: &str) {
    iscsi(c, name, json!({}), json!({}));
    attached(c, NAME);
}

fn has(calls: &[String], words: &str) -> usize {
    calls.iter().filter(|line| line.contains(words)).count()
}

#[test]
fn a_disk_is_attached_once_for_all_pods_and_its_session_ends_after_the_last() {
    with_cluster(async |mut c| {
        c.host.disk.play_programs(target);
        iscsi(&c, "a", json!({}), json!({ "mountOptions": ["noatime"] }));
        attached(&c, NAME);
        let volume = json!({ "name": "v-a", "persistentVolumeClaim": { "claimName": "a" } });
        let mounted = c.mount(&pod_of("u1", vec![volume], json!({ "fsGroup": 7 }))).await.unwrap();
        assert_eq!(mounted.volumes["v-a"].host_path, c.host.path(OF_POD));
        assert!(mounted.volumes["v-a"].selinux_relabel);
        assert_eq!(c.host.stat(DIR).gid, 7);
        let calls = c.host.disk.program_calls();
        let (discovery, node) =
            ("iscsiadm -m discoverydb -t sendtargets -p 10.0.0.1:3260 -I default", "iscsiadm -m node -p 10.0.0.1:3260");
        let wanted = [
            "iscsiadm -m iface -I default -o show".to_owned(),
            format!("{discovery} -o new"),
            format!("{discovery} --discover"),
            format!("{node} -T {IQN} -I default -o update -n node.session.scan -v manual"),
            format!("{node} -T {IQN} -I default --login"),
            format!("{node} -T {IQN} -o update -n node.startup -v manual"),
            "write /sys/class/scsi_host/host1/scan 0 0 3".to_owned(),
        ];
        assert_eq!(calls, wanted);
        let link = format!("/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-{IQN}-lun-3");
        assert_eq!(c.host.disk.format_of(Path::new(&link)).as_deref(), Some("xfs"));
        assert!(c.host.is_mounted(DIR) && c.host.is_mounted(OF_POD));
        c.mount(&pod_with("u2", &["a"])).await.unwrap();
        let rows = c.bench.wiring.ask(ListVolumes).await.unwrap();
        assert!(rows.iter().all(|row| row.kind == "iscsi" && row.error.is_none()), "{rows:?}");
        assert_eq!(rows.len(), 2);
        assert_eq!(c.in_use(), Some(vec![NAME.to_owned()]));
        c.restart().await;
        attached(&c, NAME);
        secs(70).await;
        let found = NAME.replace("10.0.0.1:", "10.0.0.1:3260:");
        assert_eq!(c.in_use(), Some(vec![found]), "as a kubelet finds it");
        c.mount(&pod_with("u2", &["a"])).await.unwrap();
        assert_eq!(c.in_use(), Some(vec![NAME.to_owned()]));
        c.unmount("u1").await.unwrap();
        secs(70).await;
        assert!(c.host.is_mounted(DIR) && !c.host.exists(OF_POD), "another pod has it");
        assert_eq!(c.host.disk.program_calls(), [""; 0], "a disk that is mounted is not asked for");
        c.unmount("u2").await.unwrap();
        secs(70).await;
        assert!(!c.host.exists("plugins/kubernetes.io/iscsi/iface-default"));
        let wanted = [
            "blockdev --flushbufs /dev/sd13".to_owned(),
            "write /sys/block/sd13/device/delete 1".to_owned(),
            format!("{node} -T {IQN} --logout -I default"),
            format!("{node} -T {IQN} -o delete -I default"),
        ];
        assert_eq!(c.host.disk.program_calls(), wanted);
        assert_eq!(c.in_use(), Some(vec![]));
    });
}

#[test]
fn a_disk_that_the_kernel_keeps_is_not_forgotten() {
    with_cluster(async |c| {
        c.host.disk.play_programs(target);
        iscsi(&c, "a", json!({}), json!({}));
        attached(&c, NAME);
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        c.host.fail("write", "/sys/block/sd13/device/delete");
        c.unmount("u1").await.unwrap();
        secs(70).await;
        let rows = c.bench.wiring.ask(ListVolumes).await.unwrap();
        assert!(rows[0].error.as_ref().unwrap().starts_with("the kernel keeps the disk sd13: write"), "{rows:?}");
        assert!(c.host.exists(DIR) && c.host.exists("/sys/block/sd13"));
        assert_eq!(has(&c.host.disk.program_calls(), "--logout"), 0);
        c.host.disk.calm();
        secs(130).await;
        assert!(!c.host.exists(DIR) && !c.host.exists("/sys/block/sd13"));
        assert_eq!(has(&c.host.disk.program_calls(), "--logout"), 1);
    });
}

#[test]
fn a_disk_is_waited_for_until_the_controller_has_said_that_it_is_for_this_node() {
    with_cluster(async |c| {
        c.host.disk.play_programs(target);
        iscsi(&c, "a", json!({}), json!({}));
        let waits = super::cluster::spawn(&c, &pod_with("u1", &["a"]));
        secs(5).await;
        assert_eq!((c.in_use(), c.host.disk.program_calls()), (Some(vec![NAME.to_owned()]), Vec::new()));
        attached(&c, NAME);
        waits.await.unwrap().unwrap();
        assert!(c.host.is_mounted(OF_POD));
    });
}

#[test]
fn two_disks_of_a_target_share_a_session_until_the_last_goes() {
    with_cluster(async |c| {
        c.host.disk.play_programs(target);
        iscsi(&c, "a", json!({}), json!({}));
        iscsi(&c, "b", json!({ "lun": 4 }), json!({}));
        let other = NAME.replace(":3", ":4");
        c.node(&[NAME, &other], &[NAME, &other]);
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        c.mount(&pod_with("u2", &["b"])).await.unwrap();
        assert_eq!(has(&c.host.disk.program_calls(), "--login"), 1);
        c.unmount("u1").await.unwrap();
        secs(70).await;
        let calls = c.host.disk.program_calls();
        assert_eq!((has(&calls, "/sd13/device/delete 1"), has(&calls, "--logout")), (1, 0));
        assert!(!c.host.exists(DIR) && c.host.exists(DIR.replace("lun-3", "lun-4")));
        c.unmount("u2").await.unwrap();
        secs(70).await;
        assert_eq!(has(&c.host.disk.program_calls(), "--logout"), 1);
    });
}

#[test]
fn several_portals_make_one_device_and_one_that_does_not_answer_is_done_without() {
    with_cluster(async |c| {
        let with_paths = |fs: &MemFs, line: &str| {
            if line.contains("10.0.0.3:3260 -I default --discover") {
                return end(4, "iscsiadm: connection timed out");
            }
            let out = target(fs, line);
            if line.starts_with("write /sys/class/scsi_host/host2/scan") {
                dir(fs, "/sys/block/dm-0/slaves/sd13");
                dir(fs, "/sys/block/dm-0/slaves/sd23");
                fs.special(Path::new("/dev/dm-0"), FileKind::BlockDevice);
            }
            if line == "multipath -f /dev/dm-0" {
                fs.remove_tree(Path::new("/sys/block/dm-0")).unwrap();
            }
            out
        };
        c.host.disk.play_programs(with_paths);
        iscsi(&c, "a", json!({ "portals": ["10.0.0.2", "10.0.0.3"] }), json!({}));
        attached(&c, NAME);
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        assert_eq!(c.host.disk.format_of(Path::new("/dev/dm-0")).as_deref(), Some("xfs"));
        assert_eq!(
            has(&c.host.disk.program_calls(), "10.0.0.3:3260 -I default --discover"),
            2,
            "two of three are enough"
        );
        c.unmount("u1").await.unwrap();
        secs(70).await;
        let calls = c.host.disk.program_calls();
        let (flush, delete) = ("multipath -f /dev/dm-0", "/device/delete 1");
        assert_eq!((has(&calls, flush), has(&calls, delete), has(&calls, "--logout")), (1, 2, 3));
        assert!(!c.host.exists(DIR));
    });
}

#[test]
fn a_login_that_takes_its_time_is_no_volume() {
    with_cluster(async |c| {
        c.host.disk.play_programs(|fs: &MemFs, line: &str| match line {
            _ if line.starts_with("write /sys/class/scsi_host") => end(0, ""),
            _ => target(fs, line),
        });
        claim(&c, "a");
        c.claim("b", json!({}));
        let waits = super::cluster::spawn(&c, &pod_with("u1", &["a"]));
        secs(2).await;
        assert_eq!(has(&c.host.disk.program_calls(), "--login"), 1, "its disk is being looked for");
        c.mount(&pod_with("u2", &["b"])).await.unwrap();
        assert_eq!(c.in_use(), Some(vec![NAME.to_owned()]));
        assert!(!waits.is_finished());
    });
}

#[test]
fn what_the_program_says_is_told_and_its_passwords_are_not() {
    with_cluster(async |c| {
        let refuses = |fs: &MemFs, line: &str| match line {
            _ if line.contains("--login") => end(24, "iscsiadm: Could not login"),
            _ => target(fs, line),
        };
        let chap = json!({ "chapAuthSession": true, "secretRef": { "name": "chap" } });
        iscsi(&c, "a", chap, json!({}));
        let secret = json!({
            "metadata": { "name": "chap", "namespace": "default" },
            "data": { "node.session.auth.username": "bWU=", "node.session.auth.password": "aHVzaA==" },
        });
        c.api.put_json("/api/v1/namespaces/default/secrets/chap", secret);
        attached(&c, NAME);
        let waits = super::cluster::spawn(&c, &pod_with("u1", &["a"]));
        secs(1).await;
        let missing = "Warning FailedMount: MountVolume.WaitForAttach failed for volume \"pv-a\" : could not read iface default: \
                       this node has no iscsiadm: it is in the package open-iscsi or iscsi-initiator-utils";
        assert_eq!(c.bench.told()[0], missing);
        c.host.disk.play_programs(refuses);
        secs(3).await;
        let told = c.bench.told();
        let failed = "Warning FailedMount: MountVolume.WaitForAttach failed for volume \"pv-a\" : failed to get any path for iscsi \
                      disk, last err seen:\niscsi: failed to attach disk to portal 10.0.0.1:3260: iscsiadm: Could not login (exit \
                      status 24)";
        assert!(told.iter().any(|line| line == failed), "{told:?}");
        assert!(told.iter().all(|line| !line.contains("hush")), "{told:?}");
        let calls = c.host.disk.program_calls();
        assert!(has(&calls, "-n node.session.auth.password -v hush") > 0, "{calls:?}");
        assert!(has(&calls, "-I default -T iqn.2001-04.com.example:disks -o delete") > 0, "{calls:?}");
        c.host.disk.play_programs(target);
        waits.await.unwrap().unwrap();
        assert!(c.host.is_mounted(OF_POD));
    });
}

#[test]
fn a_login_that_was_under_way_when_the_daemon_died_is_undone() {
    with_cluster(async |mut c| {
        let without_disk = |fs: &MemFs, line: &str| match line {
            _ if line.starts_with("write /sys/class/scsi_host") => end(0, ""),
            _ => target(fs, line),
        };
        c.host.disk.play_programs(without_disk);
        iscsi(&c, "a", json!({}), json!({}));
        attached(&c, NAME);
        let waits = super::cluster::spawn(&c, &pod_with("u1", &["a"]));
        secs(10).await;
        assert!(c.host.exists(DIR) && !c.host.is_mounted(DIR));
        let json: Value =
            serde_json::from_slice(&c.host.disk.read_file(&c.host.path(DIR).join("iscsi.json"), 9999).unwrap())
                .unwrap();
        assert_eq!((json["VolName"].as_str(), json["Lun"].as_str()), (Some("pv-a"), Some("3")));
        c.restart().await;
        waits.await.unwrap().unwrap_err();
        secs(70).await;
        let calls = c.host.disk.program_calls();
        assert_eq!((has(&calls, "--login"), has(&calls, "--logout")), (1, 1));
        assert!(!c.host.exists(DIR));
    });
}

#[test]
fn a_raw_disk_is_bound_for_each_pod_and_let_go_after_the_last() {
    with_cluster(async |mut c| {
        c.host.disk.play_programs(target);
        iscsi(&c, "a", json!({}), json!({ "volumeMode": "Block" }));
        attached(&c, NAME);
        let mounted = c.mount(&pod_with_devices("u1", &["a"])).await.unwrap();
        let link = c.host.path("pods/u1/volumeDevices/kubernetes.io~iscsi/pv-a");
        assert_eq!(mounted.devices["v-a"], MappedDevice { host_path: link.clone(), read_only: false });
        assert_eq!(c.host.link_of(&link), format!("/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-{IQN}-lun-3"));
        assert_eq!(c.host.disk.held_devices(), [c.host.path(RAW).join("u1")]);
        assert_eq!(c.bench.told().len(), 2, "it is told where it is mapped");
        c.restart().await;
        secs(70).await;
        assert_eq!(c.host.disk.held_devices().len(), 1, "a pod has it");
        c.remove("u1").await.unwrap();
        assert!(!c.host.exists("pods/u1") && c.host.disk.held_devices().is_empty());
        secs(70).await;
        let calls = c.host.disk.program_calls();
        assert_eq!((has(&calls, "/device/delete 1"), has(&calls, "--logout")), (1, 1));
        assert!(!c.host.exists(RAW));
    });
}

/// What a kubelet mounted for a pod is the pod's, and goes with it.
#[test]
fn a_disk_that_a_kubelet_mounted_is_taken_over() {
    with_cluster(async |c| {
        c.host.disk.play_programs(target);
        target(&c.host.disk, "--login -p 10.0.0.1:3260");
        target(&c.host.disk, "write /sys/class/scsi_host/host1/scan 0 0 3");
        let link = format!("/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-{IQN}-lun-3");
        let (deps, at) = (c.host.fs(), c.host.path(DIR));
        ports::host::Mounter::mount_device(&*deps, Path::new(&link), &at, "xfs", &[]).unwrap();
        ports::host::Mounter::bind_within(&*deps, &at, Path::new("."), &c.host.path(OF_POD)).unwrap();
        iscsi(&c, "a", json!({}), json!({}));
        attached(&c, NAME);
        secs(70).await;
        assert!(c.host.is_mounted(OF_POD) && c.host.is_mounted(DIR));
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        assert_eq!(c.host.disk.program_calls(), [""; 0]);
        c.unmount("u1").await.unwrap();
        secs(70).await;
        let calls = c.host.disk.program_calls();
        assert_eq!(has(&calls, "--logout -I default"), 1, "there is no file: its directory says which disk it is");
        assert!(!c.host.exists(DIR) && !c.host.exists(OF_POD));
    });
}

#[test]
fn a_disk_by_fibre_channel_is_found_by_a_scan_and_deleted_after_the_last_pod() {
    with_cluster(async |mut c| {
        c.host.disk.play_programs(fc);
        file(&c.host.disk, "/sys/class/scsi_host/host9/scan", "");
        let fc = json!({ "targetWWNs": ["5006", "5007"], "lun": 0 });
        c.claim("a", json!({ "csi": null, "fc": fc }));
        attached(&c, FC_NAME);
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        assert_eq!(c.host.disk.program_calls(), ["write /sys/class/scsi_host/host9/scan - - -"]);
        let of_pod = "pods/u1/volumes/kubernetes.io~fc/pv-a";
        assert!(c.host.is_mounted(FC_DIR) && c.host.is_mounted(of_pod));
        c.restart().await;
        secs(70).await;
        assert_eq!(c.in_use(), Some(vec![FC_NAME.to_owned()]));
        assert!(c.host.is_mounted(FC_DIR));
        c.unmount("u1").await.unwrap();
        secs(70).await;
        let wanted = ["blockdev --flushbufs /dev/sdc", "write /sys/block/sdc/device/delete 1"];
        assert_eq!(c.host.disk.program_calls(), wanted);
        assert!(!c.host.exists(FC_DIR) && !c.host.exists(of_pod));
    });
}

#[test]
fn a_multipath_device_in_use_keeps_its_disk_until_it_can_be_flushed() {
    with_cluster(async |c| {
        file(&c.host.disk, "/sys/class/scsi_host/host9/scan", "");
        for (name, port) in [("sdb", "5006"), ("sdc", "5007")] {
            disk(&c.host.disk, name, &format!("/dev/disk/by-path/pci-0000:41:00.0-fc-0x{port}-lun-0"));
            dir(&c.host.disk, &format!("/sys/block/dm-1/slaves/{name}"));
        }
        c.host.disk.special(Path::new("/dev/dm-1"), FileKind::BlockDevice);
        c.host.disk.play_programs(|fs, line| match line {
            "multipath -f /dev/dm-1" => end(1, "map in use"),
            _ => fc(fs, line),
        });
        let volume = json!({ "name": "v", "fc": { "targetWWNs": ["5006", "5007"], "lun": 0, "fsType": "ext4" } });
        attached(&c, FC_NAME);
        c.mount(&pod_of("u1", vec![volume], json!({}))).await.unwrap();
        assert_eq!(c.host.disk.program_calls(), [""; 0], "it was there");
        c.unmount("u1").await.unwrap();
        secs(20).await;
        assert!(c.host.exists(FC_DIR) && !c.host.is_mounted(FC_DIR), "it is not forgotten");
        assert_eq!(has(&c.host.disk.program_calls(), "delete"), 0);
        c.host.disk.play_programs(fc);
        secs(130).await;
        let calls = c.host.disk.program_calls();
        assert_eq!((has(&calls, "multipath -f /dev/dm-1") > 0, has(&calls, "/device/delete 1")), (true, 2));
        assert!(!c.host.exists(FC_DIR));
    });
}

/// The disk that the node itself runs from, named by a pod.
#[test]
fn a_disk_that_somebody_else_has_is_not_taken_from_the_kernel() {
    with_cluster(async |mut c| {
        disk(&c.host.disk, "sda", "/dev/disk/by-id/scsi-3600");
        c.host.disk.hold_alone(Path::new("/dev/sda"));
        c.host
            .disk
            .trouble(&c.host.path("plugins/kubernetes.io/fc/3600"), FileTrouble::FailCalls("mount", Errno::Busy));
        c.host.disk.play_programs(fc);
        let volume = json!({ "name": "v", "fc": { "wwids": ["3600"] } });
        let name = "kubernetes.io/fc/[3600]";
        c.node(&[name], &[name]);
        let waits = super::cluster::spawn(&c, &pod_of("u1", vec![volume], json!({})));
        secs(10).await;
        c.unmount("u1").await.unwrap();
        waits.await.unwrap().unwrap_err();
        secs(130).await;
        c.restart().await;
        secs(130).await;
        assert!(!c.host.exists("plugins/kubernetes.io/fc/3600"));
        assert_eq!(has(&c.host.disk.program_calls(), "delete"), 0);
        assert!(c.host.disk.stat_link(Path::new("/dev/sda")).unwrap().is_some());
    });
}

#[test]
fn a_disk_that_is_still_mounted_elsewhere_is_kept_and_not_forgotten() {
    with_cluster(async |c| {
        c.host.disk.play_programs(fc);
        file(&c.host.disk, "/sys/class/scsi_host/host9/scan", "");
        c.claim("a", json!({ "csi": null, "fc": { "targetWWNs": ["5006", "5007"], "lun": 0 } }));
        attached(&c, FC_NAME);
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        // In a mount namespace that this node does not see.
        c.host.disk.hold_alone(Path::new("/dev/sdc"));
        c.unmount("u1").await.unwrap();
        secs(20).await;
        assert!(c.host.exists(FC_DIR) && c.in_use() == Some(vec![FC_NAME.to_owned()]));
        let rows = c.bench.wiring.ask(ListVolumes).await.unwrap();
        assert!(rows.iter().any(|row| row.error.as_ref().is_some_and(|e| e.contains("/dev/sdc"))), "{rows:?}");
        assert_eq!(has(&c.host.disk.program_calls(), "delete"), 0);
        c.host.disk.let_go(Path::new("/dev/sdc"));
        secs(130).await;
        assert!(!c.host.exists(FC_DIR));
        assert_eq!(has(&c.host.disk.program_calls(), "write /sys/block/sdc/device/delete 1"), 1);
    });
}

/// A session of the host's own, with disks that no pod has.
#[test]
fn a_session_of_somebody_else_does_not_end_with_a_pod() {
    with_cluster(async |c| {
        c.host.disk.play_programs(target);
        target(&c.host.disk, "--login -p 10.0.0.1:3260");
        target(&c.host.disk, "write /sys/class/scsi_host/host1/scan 0 0 7");
        iscsi(&c, "a", json!({}), json!({}));
        attached(&c, NAME);
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        c.unmount("u1").await.unwrap();
        secs(70).await;
        let calls = c.host.disk.program_calls();
        assert_eq!((has(&calls, "/sd13/device/delete 1"), has(&calls, "--login"), has(&calls, "--logout")), (1, 0, 0));
        assert!(!c.host.exists(DIR) && c.host.disk.stat_link(Path::new("/dev/sd17")).unwrap().is_some());
    });
}

#[test]
fn a_session_that_the_interface_of_a_disk_before_began_ends_with_the_last_disk() {
    with_cluster(async |c| {
        // A session is ended by the interface that began it, or by nobody's name.
        let by_iface = |fs: &MemFs, line: &str| match line {
            _ if line.contains("--logout -I default") => end(21, ""),
            _ => target(fs, line),
        };
        c.host.disk.play_programs(by_iface);
        let other = NAME.replace(":3", ":4");
        iscsi(&c, "a", json!({ "initiatorName": "iqn.2001-04.com.example:pod" }), json!({}));
        iscsi(&c, "b", json!({ "lun": 4 }), json!({}));
        c.node(&[NAME, &other], &[NAME, &other]);
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        c.mount(&pod_with("u2", &["b"])).await.unwrap();
        c.unmount("u1").await.unwrap();
        secs(70).await;
        let calls = c.host.disk.program_calls();
        let own = "iscsiadm -m iface -I 10.0.0.1:3260:pv-a -o delete";
        assert_eq!((has(&calls, "--login"), has(&calls, "--logout"), has(&calls, own)), (1, 0, 1), "{calls:?}");
        c.unmount("u2").await.unwrap();
        secs(70).await;
        let calls = c.host.disk.program_calls();
        assert_eq!(calls.iter().filter(|line| line.ends_with("--logout")).count(), 1, "{calls:?}");
        assert!(c.host.disk.stat_link(Path::new(&session_dir("1"))).unwrap().is_none());
    });
}

/// As `target`, where `iscsiadm` refuses whatever names an interface that is not there, as it does (`usr/idbm.c`).
fn with_interfaces(fs: &MemFs, line: &str) -> ProgramEnd {
    let Some(name) = after(line, "-I").filter(|name| *name != "default") else { return target(fs, line) };
    let (is_of_iface, at) = (line.contains("-m iface"), format!("/etc/iscsi/ifaces/{name}"));
    match line.rsplit(' ').next() {
        Some("new") if is_of_iface => file(fs, &at, ""),
        _ if fs.stat_link(Path::new(&at)).unwrap().is_some() => {}
        Some("show") if is_of_iface => return end(6, "iscsiadm: Could not read iface"),
        _ => return end(if is_of_iface { 7 } else { 3 }, "iscsiadm: Could not read iface info"),
    }
    if is_of_iface && line.ends_with("-o delete") {
        fs.remove_file(Path::new(&at)).unwrap();
    }
    target(fs, line)
}

#[test]
fn a_disk_whose_own_interface_is_gone_is_let_go() {
    for is_refused in [true, false] {
        with_cluster(async |c| {
            c.host.disk.play_programs(move |fs, line| {
                let is_login = is_refused && line.contains("--login");
                if is_login { end(24, "iscsiadm: Could not login") } else { with_interfaces(fs, line) }
            });
            iscsi(&c, "a", json!({ "initiatorName": "iqn.2001-04.com.example:pod" }), json!({}));
            attached(&c, NAME);
            let waits = super::cluster::spawn(&c, &pod_with("u1", &["a"]));
            secs(5).await;
            let iface = PathBuf::from("/etc/iscsi/ifaces/10.0.0.1:3260:pv-a");
            // A login that was refused took it away.
            assert_eq!(c.host.disk.stat_link(&iface).unwrap().is_none(), is_refused);
            c.unmount("u1").await.unwrap();
            assert_eq!(waits.await.unwrap().is_err(), is_refused);
            // As a daemon leaves it that dies before the directory is removed.
            c.host.disk.remove_file(&iface).unwrap();
            secs(400).await;
            assert!(!c.host.exists("plugins/kubernetes.io/iscsi/iface-10.0.0.1:3260:pv-a"), "refused: {is_refused}");
            assert!(c.host.disk.stat_link(Path::new(&session_dir("1"))).unwrap().is_none());
            assert_eq!(c.in_use(), Some(vec![]));
        });
    }
}

#[test]
fn a_disk_or_a_directory_for_one_pod_is_not_for_two() {
    with_cluster(async |mut c| {
        c.host.disk.play_programs(target);
        let one = json!({ "accessModes": ["ReadWriteOncePod"] });
        iscsi(&c, "a", json!({}), one.clone());
        iscsi(&c, "b", json!({ "lun": 4 }), json!({ "accessModes": ["ReadWriteOncePod"], "volumeMode": "Block" }));
        let other = NAME.replace(":3", ":4");
        dir(&c.host.disk, "/srv/disk");
        let mut local = one;
        (local["csi"], local["local"]) = (Value::Null, json!({ "path": "/srv/disk" }));
        c.claim("l", local);
        c.node(&[NAME, &other], &[NAME, &other]);
        for (i, claim) in ["a", "b", "l"].into_iter().enumerate() {
            let mut waits = 0;
            let (first, second) = (format!("u{i}"), format!("v{i}"));
            let pod = |uid: &str| match claim {
                "b" => pod_with_devices(uid, &[claim]),
                _ => pod_with(uid, &[claim]),
            };
            c.mount(&pod(&first)).await.unwrap();
            c.restart().await;
            c.node(&[NAME, &other], &[NAME, &other]);
            let e = c.mount(&pod(&second)).await.unwrap_err();
            assert!(e.message.contains("ReadWriteOncePod access mode and is already in use by another pod"), "{e}");
            c.mount(&pod(&first)).await.unwrap();
            c.remove(&first).await.unwrap();
            assert!(!c.host.exists(format!("pods/{first}")));
            // The back-off of a volume is two minutes at most.
            while let Err(e) = c.mount(&pod(&second)).await {
                waits += 1;
                assert!(waits < 3, "{claim}: {e}");
            }
        }
    });
}

#[test]
fn a_death_before_a_disk_is_attached_or_detached_is_made_good() {
    let points = ["panic@attach#1", "kill@attach#1", "panic@detach#1", "kill@detach#1"];
    for (rule, is_fc) in points.iter().flat_map(|rule| [(rule, false), (rule, true)]) {
        actor::testing::run(1, async |kernel| {
            let c = Cluster::start(&kernel);
            if is_fc {
                c.host.disk.play_programs(fc);
                file(&c.host.disk, "/sys/class/scsi_host/host9/scan", "");
                c.claim("a", json!({ "csi": null, "fc": { "targetWWNs": ["5006", "5007"], "lun": 0 } }));
                attached(&c, FC_NAME);
            } else {
                c.host.disk.play_programs(target);
                iscsi(&c, "a", json!({}), json!({}));
                attached(&c, NAME);
            }
            kernel.faults().enable();
            kernel.faults().add_text(&format!("volume-manager: {rule}")).unwrap();
            let pod = pod_with("u1", &["a"]);
            let mut tries = 0;
            while c.mount(&pod).await.is_err() {
                tries += 1;
                assert!(tries < 3, "{rule}");
            }
            let at = if is_fc { FC_DIR } else { DIR };
            assert!(c.host.is_mounted(at), "{rule}");
            while c.unmount("u1").await.is_err() {
                tries += 1;
                assert!(tries < 3, "{rule}");
            }
            secs(70).await;
            assert_eq!(kernel.faults().log().len(), 1, "{rule} did not strike");
            assert!(!c.host.exists(at), "{rule}");
            let calls = c.host.disk.program_calls();
            assert_eq!(has(&calls, "/device/delete 1"), 1, "{rule}: {calls:?}");
            assert_eq!(has(&calls, "--login"), has(&calls, "--logout"), "{rule}: {calls:?}");
        });
    }
}

#[test]
fn a_disk_is_mounted_with_the_label_of_its_pod_and_anew_for_one_with_another() {
    with_selinux(false, async |mut c| {
        c.host.disk.play_programs(target);
        iscsi(&c, "a", json!({}), json!({ "accessModes": ["ReadWriteOncePod"], "mountOptions": ["noatime"] }));
        attached(&c, NAME);
        let volume = json!({ "name": "v-a", "persistentVolumeClaim": { "claimName": "a" } });
        let pod =
            |uid: &str, level: &str| pod_of(uid, vec![volume.clone()], json!({ "seLinuxOptions": { "level": level } }));
        let options = |c: &Cluster| {
            let table = c.host.disk.mount_table(&c.host.path("")).unwrap();
            table.into_iter().find(|line| line.at == c.host.path(DIR)).map(|line| line.options)
        };
        let with = |level: &str| Some(format!("noatime,context=\"system_u:object_r:container_file_t:{level}\""));
        let mounted = c.mount(&pod("u1", "s0:c1,c2")).await.unwrap();
        assert!(!mounted.volumes["v-a"].selinux_relabel, "the runtime need not look at each file");
        assert_eq!(options(&c), with("s0:c1,c2"));
        let e = c.mount(&pod("u2", "s0:c3,c4")).await.unwrap_err();
        assert!(e.message.contains("conflicting SELinux labels of volume pv-a"), "{e}");
        c.unmount("u2").await.unwrap();
        c.restart().await;
        attached(&c, NAME);
        let e = c.mount(&pod("u2", "s0:c3,c4")).await.unwrap_err();
        assert!(e.message.contains("waiting for unmount of volume"), "a daemon that has not seen the other pod: {e}");
        c.unmount("u2").await.unwrap();
        c.unmount("u1").await.unwrap();
        c.mount(&pod("u2", "s0:c3,c4")).await.unwrap();
        assert_eq!(options(&c), with("s0:c3,c4"));
        c.restart().await;
        attached(&c, NAME);
        let mounted = c.mount(&pod("u2", "s0:c5,c6")).await.unwrap();
        assert!(!mounted.volumes["v-a"].selinux_relabel);
        assert_eq!(options(&c), with("s0:c3,c4"), "what a pod runs with stays");
    });
    with_selinux(false, async |c| {
        c.host.disk.play_programs(target);
        iscsi(&c, "a", json!({}), json!({ "accessModes": ["ReadWriteOnce"] }));
        attached(&c, NAME);
        let volume = json!({ "name": "v-a", "persistentVolumeClaim": { "claimName": "a" } });
        let options = json!({ "seLinuxOptions": { "level": "s0:c1,c2" } });
        let mounted = c.mount(&pod_of("u1", vec![volume], options)).await.unwrap();
        assert!(mounted.volumes["v-a"].selinux_relabel, "volumes for one node are not mounted with labels");
    });
}

/// Pseudo-random numbers below `n`.
fn random(seed: u64) -> impl FnMut(u64) -> u64 + Send {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |n| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    }
}

/// Many lives of a daemon on a host whose `iscsiadm` refuses, or does and says that it did not; some die over a change of the disk.
/// In the end nothing is left. How many says `LYING_DRIVER_RUNS`, from which seed on `LYING_DRIVER_SEED`.
#[test]
fn whatever_programs_say_nothing_of_a_disk_stays_behind() {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |n| n.parse().expect("a number"));
    let (first, runs) = (number("LYING_DRIVER_SEED", 0), number("LYING_DRIVER_RUNS", 100));
    let names = [3, 4].map(|lun| NAME.replace(":3", &format!(":{lun}")));
    let names = [names[0].as_str(), names[1].as_str()];
    for seed in first..first + runs {
        actor::testing::run(seed, async |kernel| {
            let mut c = Cluster::start(&kernel);
            let (mut next, lies) = (random(seed), Mutex::new(random(!seed)));
            let trouble = Arc::new(AtomicBool::new(true));
            let lying = trouble.clone();
            c.host.disk.play_programs(move |fs, line| {
                let what = if lying.load(Ordering::Relaxed) { lies.lock().unwrap()(6) } else { 5 };
                match what {
                    0 if line.starts_with("iscsiadm") => end(1, "no"),
                    1 if line.starts_with("iscsiadm") => {
                        let _ = target(fs, line);
                        end(1, "lost")
                    }
                    _ => target(fs, line),
                }
            });
            iscsi(&c, "a", json!({}), json!({}));
            iscsi(&c, "b", json!({ "lun": 4 }), json!({ "volumeMode": "Block" }));
            c.node(&names, &names);
            let pods = [pod_with("u1", &["a"]), pod_with("u2", &["a"]), pod_with_devices("u3", &["b"])];
            for _ in 0..6 {
                let tasks: Vec<_> = pods.iter().map(|p| super::cluster::spawn(&c, p)).collect();
                tokio::time::sleep(Duration::from_millis(next(40_000))).await;
                let death = match next(4) {
                    0 => Some(None),
                    1 => Some(Some(Mortal::after(&c.host.disk, usize::try_from(next(30)).unwrap()))),
                    _ => None,
                };
                if let Some(mortal) = death {
                    tasks.iter().for_each(tokio::task::JoinHandle::abort);
                    c.restart_as(mortal).await;
                    c.node(&names, &names);
                }
                let (uid, going) = (format!("u{}", 1 + next(3)), c.clone());
                let unmount = tokio::task::spawn_local(async move { going.unmount(&uid).await.is_ok() });
                tokio::time::sleep(Duration::from_millis(next(10_000))).await;
                unmount.abort();
            }
            trouble.store(false, Ordering::Relaxed);
            c.restart().await;
            c.node(&names, &names);
            for uid in ["u1", "u2", "u3"] {
                c.remove(uid).await.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            }
            secs(400).await;
            let left: Vec<_> =
                c.host.disk.mount_table(&c.host.path("")).unwrap().into_iter().map(|line| line.at).collect();
            assert!(left.is_empty(), "seed {seed}: {left:?}");
            for dir in
                ["plugins/kubernetes.io/iscsi/iface-default", "plugins/kubernetes.io/iscsi/volumeDevices/iface-default"]
            {
                assert!(!c.host.exists(dir), "seed {seed}: {:?}", c.host.names(dir));
            }
            assert!(c.host.disk.held_devices().is_empty(), "seed {seed}");
            let session = c.host.disk.stat_link(Path::new(&session_dir("1"))).unwrap();
            assert!(session.is_none(), "seed {seed}: a session that nobody has");
            assert_eq!(c.in_use(), Some(vec![]), "seed {seed}");
        });
    }
}
