//! A device that answers with errors for a while: dm-flakey under a file system, as when a disk or its cable fails.

use crate::node::{Node, shell};

/// A device of `mib` MiB that can be told to fail, with a file system mounted at `at`. Without a journal of its own: it goes on
/// when its device does.
fn mount_flaky(node: &Node, mib: u32, at: &str) {
    node.sh(&format!(
        "set -e; modprobe -a dm-mod dm-flakey; truncate -s {mib}M /var/flaky.img; loop=$(losetup --find --show /var/flaky.img)
         echo \"0 $(blockdev --getsz $loop) linear $loop 0\" > /run/flaky.good
         echo \"0 $(blockdev --getsz $loop) flakey $loop 0 0 100000\" > /run/flaky.bad
         dmsetup create flaky --noudevsync < /run/flaky.good; dmsetup mknodes flaky
         mkfs.ext4 -q -O ^has_journal /dev/mapper/flaky; mkdir -p {at}; mount -o errors=continue /dev/mapper/flaky {at}"
    ));
}

/// From now on the device works, or fails each read and write.
fn turn(node: &Node, to: &str) {
    // What is remembered of its files would hide that they cannot be read.
    node.sh(&format!(
        "set -e; dmsetup suspend --nolockfs --noflush --noudevsync flaky; dmsetup load flaky < /run/flaky.{to}
         dmsetup resume --noudevsync flaky; echo 3 > /proc/sys/vm/drop_caches"
    ));
}

fn with_data(name: &str) -> String {
    let mounts = "    volumeMounts: [{name: data, mountPath: /data}]\n";
    let volumes = format!("  volumes: [{{name: data, hostPath: {{path: /mnt/flaky/{name}, type: Directory}}}}]\n");
    let script = "cat /data/file; echo written > /data/ours; exec sleep 100000";
    format!("  containers:\n{}{volumes}", shell("main", script, mounts))
}

fn plain() -> String {
    let mounts = "    volumeMounts: [{name: work, mountPath: /work}]\n";
    format!(
        "  containers:\n{}  volumes: [{{name: work, emptyDir: {{}}}}]\n",
        shell("main", "exec sleep 100000", mounts)
    )
}

#[test]
fn a_device_with_errors_is_told_of_holds_up_its_own_pods_only_and_heals() {
    let node = Node::without_services();
    mount_flaky(&node, 64, "/mnt/flaky");
    // The daemon's journal is on it, too.
    node.sh("set -e; cd /mnt/flaky; mkdir -p before uses bosun /var/lib/kubelet/bosun; echo here | tee before/file > uses/file; sync
             mount --bind /mnt/flaky/bosun /var/lib/kubelet/bosun");
    node.up();
    node.put("before", &with_data("before"));
    let before = node.wait_running("before");
    turn(&node, "bad");
    node.put("uses", &with_data("uses"));
    node.put("other", &plain());
    node.wait_event("uses", "FailedMount", "os error 5");
    node.wait_running("other");
    let waits = node.pod("uses").expect("an answer").expect("a pod");
    assert_eq!(waits["status"]["phase"], "Pending", "{waits}");
    node.remove("other");
    node.wait_gone("other");
    turn(&node, "good");
    node.wait_running("uses");
    let after = node.wait_running("before");
    assert_eq!(testbed::identity(&before), testbed::identity(&after), "nobody touched the one that ran");
    assert_eq!(node.sh("cat /mnt/flaky/uses/file /mnt/flaky/uses/ours"), "here\nwritten\n");
    // The journal is written again, and was not taken for damaged.
    node.restart_bosun();
    assert_eq!(testbed::identity(&node.wait_running("before")), testbed::identity(&before));
    assert_eq!(node.sh("ls /var/lib/kubelet/bosun | grep -c damaged || true").trim(), "0", "{}", node.log());
}
