//! A pod with a claim, a CSI driver, and an attacher, which the test plays.

use std::path::Path;

use csi_driver::Config;
use serde_json::{Value, json};
use testbed::{ClusterNode, wait_until};

use crate::node::{SOON, create, delete, start, wait_gone, wait_output, wait_running};
use crate::site::{Claim, DRIVER, PLAIN, Site, claimed, raw_user, user_that};

/// Names and ends of calls.
fn ends(calls: &[Value]) -> Vec<String> {
    let word = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    calls.iter().map(|c| format!("{} {}", word(&c["call"]), word(&c["code"]))).collect()
}

/// The daemon is killed and started again; the pod's container is not.
fn stays_over_a_kill(node: &mut ClusterNode, name: &str, before: &Value) {
    node.bosun.kill();
    node.start_again().expect("starts again");
    node.wait_ready(SOON).expect("ready");
    let after = wait_running(node, name);
    let container = |pod: &Value| pod["status"]["containerStatuses"][0]["containerID"].clone();
    assert_eq!(container(&after), container(before), "no restart");
}

fn wait_undone(site: &Site, claim: &str) {
    let unstaged = || {
        let (ended, in_use) = (ends(&site.calls_about(claim)), site.in_use());
        let undone = ["NodeUnpublishVolume Ok".to_owned(), "NodeUnstageVolume Ok".to_owned()];
        if ended.ends_with(&undone) && in_use.is_empty() { Ok(()) } else { Err(format!("{ended:?}, {in_use:?}")) }
    };
    wait_until("the volume to be taken back", SOON, unstaged)
        .unwrap_or_else(|e| panic!("{e}\n{}", site.node.bosun.log()));
}

/// Files behind loop devices that are below a folder.
pub(crate) fn looped(below: &Path) -> Vec<String> {
    let devices = std::fs::read_dir("/sys/block").expect("block devices").flatten();
    let files = devices.filter_map(|d| std::fs::read_to_string(d.path().join("loop/backing_file")).ok());
    files.map(|f| f.trim().to_owned()).filter(|f| Path::new(f).starts_with(below)).collect()
}

#[test]
fn a_claims_volume_is_attached_staged_published_kept_over_a_kill_and_taken_back() {
    let mut site = Site::on(start(), &Config::default());
    let mut one = Claim::of("one", DRIVER);
    one.source["volumeAttributes"]["colour"] = json!("blue");
    site.claim(&one);
    create(&site.node, &user_that("claims", &claimed("one"), "echo hello > /data/word;", &json!({})));

    let told = || if site.in_use() == [one.unique()] { Ok(()) } else { Err(format!("{:?}", site.in_use())) };
    wait_until("the volume to be in use", SOON, told).expect("volumesInUse");
    assert!(site.calls().is_empty(), "a driver is not called before its volume is attached");
    let running = site.ready("claims");
    let word = site.folder(DRIVER).join("volumes/vol-one/data/word");
    let written = || std::fs::read_to_string(&word).map_err(|e| e.to_string());
    assert_eq!(wait_until("the word", SOON, written).expect("the word"), "hello\n");
    let made = site.calls_about("one");
    assert_eq!(ends(&made), ["NodeStageVolume Ok", "NodePublishVolume Ok"]);
    assert_eq!(made[0]["request"]["publish_context"], json!({"disk": "sdx"}));
    let context = &made[1]["request"]["volume_context"];
    assert_eq!((&context["colour"], &context["csi.storage.k8s.io/pod.name"]), (&json!("blue"), &json!("claims")));

    stays_over_a_kill(&mut site.node, "claims", &running);
    delete(&site.node, "claims");
    wait_gone(&site.node, "claims");
    wait_undone(&site, "one");
    assert_eq!(written().as_deref(), Ok("hello\n"), "what users wrote stays");
}

#[test]
fn a_raw_volume_is_a_device_of_the_container_held_open_over_a_kill_and_taken_back() {
    let mut site = Site::on(start(), &Config::default());
    let folder = site.folder(PLAIN);
    site.claim(&Claim { kind: "Block", ..Claim::of("raw", PLAIN) });
    create(&site.node, &raw_user("raw", &claimed("raw"), "echo hello > /dev/raw; sync;"));

    let running = site.ready("raw");
    let image = folder.join("volumes/vol-raw/image");
    let written = || match std::fs::read(&image) {
        Ok(bytes) if bytes.starts_with(b"hello\n") => Ok(()),
        other => Err(format!("{:?}", other.map(|bytes| bytes[..8.min(bytes.len())].to_vec()))),
    };
    wait_until("the word to be on the disk", SOON, written).expect("the word");
    let made = site.calls_about("raw");
    assert_eq!(ends(&made), ["NodeStageVolume Ok", "NodePublishVolume Ok"]);
    assert!(made.iter().all(|call| call["request"]["volume_capability"]["block"].is_object()), "{made:?}");
    let maps = site.root().join("plugins/kubernetes.io/csi/volumeDevices");
    let uid = running["metadata"]["uid"].as_str().expect("a UID");
    let held = || looped(&maps);
    assert_eq!(held(), [maps.join("pv-raw/dev").join(uid).display().to_string()], "it is held open");

    stays_over_a_kill(&mut site.node, "raw", &running);
    assert_eq!(held().len(), 1, "once");
    delete(&site.node, "raw");
    wait_gone(&site.node, "raw");
    wait_undone(&site, "raw");
    let none = || {
        let dirs = ["pv-raw", "staging/pv-raw"].map(|dir| maps.join(dir).exists());
        let left = (held(), looped(&folder), dirs);
        if left == (vec![], vec![], [false; 2]) { Ok(()) } else { Err(format!("{left:?}")) }
    };
    wait_until("nothing to be left of it", SOON, none).expect("nothing is left of it");
    assert_eq!(written(), Ok(()), "what users wrote stays");
}

#[test]
fn a_file_system_on_a_driver_s_device_is_mounted_as_the_claim_says_kept_over_a_kill_and_taken_back() {
    let mut site = Site::on(start(), &Config::default());
    let folder = site.folder(DRIVER);
    let mut claim = Claim::of("disk", DRIVER);
    claim.source["fsType"] = json!("ext4");
    claim.source["volumeAttributes"] = json!({"kind": "ext4", "size": "33554432"});
    claim.volume = json!({"mountOptions": ["noatime", "nodiratime"]});
    site.claim(&claim);
    let script = "grep ' /data ' /proc/mounts; stat -c '%g %a' /data; echo hello > /data/word; sync; echo end;";
    let group = json!({"securityContext": {"fsGroup": 4321}});
    create(&site.node, &user_that("disk", &claimed("disk"), script, &group));

    let running = site.ready("disk");
    let text = wait_output(&site.node, &running, "its mount", |text| text.contains("end"));
    let mount = text.lines().next().unwrap_or_default();
    assert!(mount.contains(" /data ext4 ") && mount.contains("noatime"), "{text}");
    assert!(text.contains("4321 2775"), "the driver's CSIDriver says File:\n{text}");
    let made = site.calls_about("disk");
    assert_eq!(ends(&made), ["NodeStageVolume Ok", "NodePublishVolume Ok"]);
    let flags = json!({"fs_type": "ext4", "mount_flags": ["noatime", "nodiratime"]});
    for call in &made {
        let mount = &call["request"]["volume_capability"]["mount"];
        assert_eq!((&mount["fs_type"], &mount["mount_flags"]), (&flags["fs_type"], &flags["mount_flags"]), "{call}");
    }
    assert_eq!(looped(&folder).len(), 1, "one device");

    stays_over_a_kill(&mut site.node, "disk", &running);
    delete(&site.node, "disk");
    wait_gone(&site.node, "disk");
    wait_undone(&site, "disk");
    assert_eq!(looped(&folder), Vec::<String>::new(), "no device is left");
    let image = folder.join("volumes/vol-disk/image").display().to_string();
    let read = std::process::Command::new("debugfs").args(["-R", "cat /word", &image]).output().expect("debugfs");
    assert_eq!(String::from_utf8_lossy(&read.stdout), "hello\n", "what users wrote stays");
}
