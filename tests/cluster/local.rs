//! Local volumes on disks of the node's own: formatted with what their PersistentVolume says, mounted once, shared, and let go.

use std::path::{Path, PathBuf};
use std::process::Command;

use csi_driver::Config;
use serde_json::{Value, json};
use testbed::wait_until;

use crate::node::{SOON, create, delete, start, wait_gone, wait_output};
use crate::site::{Claim, PLAIN, Site, claimed, user_that};

/// The least that xfs takes.
const SIZE: u64 = 320 << 20;

/// A disk: an image on a loop device.
struct Disk {
    device: String,
}

impl Disk {
    fn new(image: &Path) -> Self {
        let made = std::fs::File::create(image).and_then(|file| file.set_len(SIZE));
        made.expect("an image");
        let out = Command::new("losetup").args(["-f", "--show"]).arg(image).output().expect("losetup");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        Self { device: String::from_utf8_lossy(&out.stdout).trim().to_owned() }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _best_effort = Command::new("losetup").arg("-d").arg(&self.device).status();
    }
}

fn can(fs_type: &str) -> bool {
    let _loaded = Command::new("modprobe").args(["-q", fs_type]).status();
    let kernel = std::fs::read_to_string("/proc/filesystems").expect("what the kernel can mount");
    let tool = PathBuf::from(format!("/usr/sbin/mkfs.{fs_type}"));
    kernel.lines().any(|line| line.split_whitespace().last() == Some(fs_type)) && tool.exists()
}

fn on(disk: &Disk, name: &str, fs_type: &str) -> Claim {
    let node = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": ["bed"]});
    let volume = json!({
        "csi": null, "local": {"path": disk.device, "fsType": fs_type},
        "mountOptions": ["noatime"],
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [node]}]}},
    });
    Claim { volume, ..Claim::of(name, PLAIN) }
}

/// Mounts of a device: where, and the type.
fn mounts(device: &str) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/self/mounts").expect("the mount table");
    table.lines().filter(|line| line.split(' ').next() == Some(device)).map(str::to_owned).collect()
}

fn uses(site: &Site, name: &str, claim: &str, more: &Value) -> String {
    let script = format!("grep ' /data ' /proc/mounts; echo {name} >> /data/words; cat /data/words; sync; echo end;");
    create(&site.node, &user_that(name, &claimed(claim), &script, more));
    let pod = site.ready(name);
    wait_output(&site.node, &pod, "its mount", |text| text.contains("end"))
}

#[test]
fn a_disk_of_the_node_is_formatted_mounted_once_for_all_its_pods_kept_over_a_kill_and_let_go() {
    let mut site = Site::on(start(), &Config::default());
    for fs_type in ["ext4", "xfs"] {
        if !can(fs_type) {
            println!("{fs_type} is left out: this kernel cannot mount it, or mkfs.{fs_type} is missing");
            continue;
        }
        let disk = Disk::new(&site.node.bed.dir().join(format!("{fs_type}.img")));
        site.claim(&on(&disk, fs_type, fs_type));
        let (one, two) = (format!("{fs_type}-one"), format!("{fs_type}-two"));
        let text = uses(&site, &one, fs_type, &json!({"securityContext": {"fsGroup": 4321}}));
        assert!(text.contains(&format!(" /data {fs_type} ")) && text.contains("noatime"), "{text}");
        let text = uses(&site, &two, fs_type, &json!({"securityContext": {"fsGroup": 4321}}));
        assert!(text.contains(&format!("{one}\n{two}\n")), "one file system for both:\n{text}");
        let before = mounts(&disk.device);

        site.node.bosun.kill();
        site.node.start_again().expect("starts again");
        site.node.wait_ready(SOON).expect("ready");
        delete(&site.node, &one);
        wait_gone(&site.node, &one);
        assert!(mounts(&disk.device).len() < before.len(), "{before:#?}");
        delete(&site.node, &two);
        wait_gone(&site.node, &two);
        let let_go = || {
            let left = mounts(&disk.device);
            if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
        };
        wait_until("the disk to be let go", 2 * SOON, let_go)
            .unwrap_or_else(|e| panic!("{e}\n{}", site.node.bosun.log()));
    }
}
