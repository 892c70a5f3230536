//! A device that answers with errors for a while: dm-flakey under a file system, as when a disk or its cable fails.

use serde_json::json;

use crate::claims::{create_claim, mounts, with_claim};
use crate::node::{Node, shell};
use crate::served::{create, delete, get, pod, serve, wait_gone, wait_running};

/// The device.
const DEVICE: &str = "/dev/mapper/flaky";

/// A device of `mib` MiB that can be told to fail.
pub(crate) fn make_flaky(node: &Node, mib: u32) {
    node.sh(&format!(
        "set -e; modprobe -a dm-mod dm-flakey; truncate -s {mib}M /var/flaky.img; loop=$(losetup --find --show /var/flaky.img)
         echo \"0 $(blockdev --getsz $loop) linear $loop 0\" > /run/flaky.good
         echo \"0 $(blockdev --getsz $loop) flakey $loop 0 0 100000\" > /run/flaky.bad
         dmsetup create flaky --noudevsync < /run/flaky.good; dmsetup mknodes flaky"
    ));
}

/// One with a file system mounted at `at`. Without a journal of its own: it goes on when its device does.
pub(crate) fn mount_flaky(node: &Node, mib: u32, at: &str) {
    make_flaky(node, mib);
    node.sh(&format!(
        "set -e; mkfs.ext4 -q -m 0 -O ^has_journal {DEVICE}; mkdir -p {at}; mount -o errors=continue {DEVICE} {at}"
    ));
}

/// From now on the device works, or fails each read and write.
pub(crate) fn turn(node: &Node, to: &str) {
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
    // Content of new files may be lost until somebody mounts it anew: ext4 takes a group whose bitmap it could not read for damaged.
    node.wait("the pod to write", || {
        let text = node.sh("cat /mnt/flaky/uses/file; ls /mnt/flaky/uses");
        if text == "here\nfile\nours\n" { Ok(()) } else { Err(format!("{text:?}")) }
    });
    // The journal is written again, and was not taken for damaged.
    node.restart_bosun();
    assert_eq!(testbed::identity(&node.wait_running("before")), testbed::identity(&before));
    assert_eq!(node.sh("ls /var/lib/kubelet/bosun | grep -c damaged || true").trim(), "0", "{}", node.log());
}

/// What users wrote to the claim's disk, as the pod that has it sees it.
fn written(node: &Node) -> String {
    let at = mounts(node, DEVICE);
    at.first().map_or_else(String::new, |at| node.sh(&format!("cat {at}/file")))
}

#[test]
fn a_claims_disk_with_errors_is_never_formatted_and_is_whole_when_it_works_again() {
    let node = Node::without_services();
    make_flaky(&node, 64);
    serve(&node, &json!({}));
    create_claim(&node, "disk", DEVICE);
    let writes = |name: &str, word: &str| {
        let (container, spec) = with_claim("disk", &format!("echo {word} >> /disk/file; sync; exec sleep 100000"));
        create(&node, name, container, spec);
    };
    let reads = |wanted: &str| {
        node.wait("the pod to have written", || {
            let text = written(&node);
            if text == wanted { Ok(()) } else { Err(text) }
        });
    };
    let leaves = |name: &str| {
        delete(&node, name);
        wait_gone(&node, name);
        node.wait("the disk to be let go", || match mounts(&node, DEVICE) {
            none if none.is_empty() => Ok(()),
            some => Err(format!("{some:?}")),
        });
    };
    writes("first", "one");
    wait_running(&node, "first");
    reads("one\n");
    leaves("first");

    // It fails before it is mounted.
    turn(&node, "bad");
    writes("second", "two");
    create(&node, "other", json!({"command": ["sleep", "100000"]}), json!({}));
    node.wait("word of the disk", || {
        let events = get(&node, "namespaces/default/events")?;
        let is_it = |e: &serde_json::Value| e["involvedObject"]["name"] == "second" && e["reason"] == "FailedMount";
        let told = events["items"].as_array().into_iter().flatten().find(|e| is_it(e)).cloned();
        told.map(|e| println!("{}", e["message"])).ok_or_else(|| events.to_string())
    });
    wait_running(&node, "other");
    assert_eq!(pod(&node, "second").expect("an answer")["status"]["phase"], "Pending");
    turn(&node, "good");
    wait_running(&node, "second");
    reads("one\ntwo\n");

    // It fails while it is mounted, and its pod goes.
    turn(&node, "bad");
    leaves("second");
    turn(&node, "good");
    writes("third", "three");
    wait_running(&node, "third");
    reads("one\ntwo\nthree\n");
    leaves("third");
    wait_running(&node, "other");
}
