//! A node short of disk: what is tidied up, who goes, and that it comes back. On one disk, and with images and layers on their own.

use serde_json::{Value, json};
use testbed::BASH_IMAGE;

use crate::node::Node;
use crate::served::{create, serve, wait_condition, wait_evicted, wait_running};

/// Below this pods go, in MiB.
const THRESHOLD: u64 = 100;
/// What a pod takes until it goes, in MiB.
const FILLS: u64 = 200;
/// Inodes of a disk with few, and those below which pods go.
const INODES: u64 = 16_000;
const LEAST_INODES: u64 = 4_000;

/// Small disks for what the node keeps; the last one for what the runtime keeps.
fn on_small_disks(disks: usize) -> Node {
    let (nodefs, imagefs) = (format!("{THRESHOLD}Mi"), format!("{THRESHOLD}Mi"));
    on_disks(disks, "", &json!({"nodefs.available": nodefs, "imagefs.available": imagefs}))
}

/// Formatted with such words of `mkfs.ext4`; pods go below such thresholds.
fn on_disks(disks: usize, format: &str, thresholds: &Value) -> Node {
    let node = Node::without_services();
    node.sh(&format!(
        "set -e; modprobe loop
         for n in $(seq {disks}); do truncate -s 320M /var/small$n.img; mkfs.ext4 -q {format} /var/small$n.img; mkdir -p /mnt/small$n
           mount -o loop /var/small$n.img /mnt/small$n; done
         mkdir -p /mnt/small1/kubelet /mnt/small1/pods /var/lib/kubelet /var/log/pods /mnt/small{disks}/containerd
         cp -a /var/lib/containerd/. /mnt/small{disks}/containerd
         mount --bind /mnt/small1/kubelet /var/lib/kubelet; mount --bind /mnt/small1/pods /var/log/pods
         mount --bind /mnt/small{disks}/containerd /var/lib/containerd"
    ));
    // Nobody cuts a log off before the disk is short.
    serve(
        &node,
        &json!({"evictionHard": thresholds, "evictionPressureTransitionPeriod": "1s", "containerLogMaxSize": "1Gi"}),
    );
    create(&node, "calm", json!({"command": ["sleep", "100000"]}), json!({}));
    wait_running(&node, "calm");
    node
}

/// One that takes disk goes, with the resource in the message, and nobody else; then there is room again.
fn fills(node: &Node, name: &str, script: &str, disk: &str) {
    exhausts(node, name, script, "ephemeral-storage");
    wait_room(node, disk, "'%a %S'", 150.0);
}

/// Waits until a figure of the disk (blocks and their size, or inodes) is large again.
fn wait_room(node: &Node, disk: &str, figure: &str, least: f64) {
    node.wait("room to be there", || {
        let free = node.sh(&format!("stat -f -c {figure} {disk} | awk '{{ print NF == 2 ? $1 * $2 / 1048576 : $1 }}'"));
        let free: f64 = free.trim().parse().map_err(|_| free.clone())?;
        if free > least { Ok(()) } else { Err(format!("{free} of {disk}")) }
    });
}

fn exhausts(node: &Node, name: &str, script: &str, resource: &str) {
    let calm = wait_running(node, "calm");
    let volume = json!({"volumes": [{"name": "work", "emptyDir": {}}]});
    let mounts = json!([{"name": "work", "mountPath": "/work"}]);
    let container = json!({"command": ["sh", "-c", script], "volumeMounts": mounts});
    create(node, name, container, volume);
    let message = wait_evicted(node, name);
    println!("{name}: {message}");
    let begins = format!("The node was low on resource: {resource}. Threshold quantity: ");
    assert!(message.starts_with(&begins), "{message}");
    wait_condition(node, "DiskPressure", "False");
    assert_eq!(testbed::identity(&wait_running(node, "calm")), testbed::identity(&calm), "the other one runs on");
}

/// Writes so much at some 20 MiB/s; the guest's clock and disk are slow enough.
fn write_to(path: &str) -> String {
    format!("for n in $(seq {FILLS}); do dd if=/dev/zero bs=1M count=1 2> /dev/null; done > {path}; exec sleep 100000")
}

fn images(node: &Node) -> String {
    node.sh("ctr -n k8s.io images ls -q")
}

#[test]
fn on_one_disk_volumes_logs_and_layers_end_the_pod_that_wrote_them() {
    let node = on_small_disks(1);
    assert!(images(&node).contains(BASH_IMAGE), "{}", images(&node));
    fills(&node, "volume", &write_to("/work/file"), "/mnt/small1");
    assert!(!images(&node).contains(BASH_IMAGE), "images that nobody uses went first: {}", images(&node));
    fills(&node, "layer", &write_to("/file"), "/mnt/small1");
    let lines =
        format!("line=$(printf %04000d 7); for n in $(seq {}); do echo $line; done; exec sleep 100000", FILLS * 256);
    fills(&node, "log", &lines, "/mnt/small1");
}

#[test]
fn with_two_disks_each_one_has_its_own_victims() {
    let node = on_small_disks(2);
    fills(&node, "volume", &write_to("/work/file"), "/mnt/small1");
    assert!(images(&node).contains(BASH_IMAGE), "no image is on the disk that was short: {}", images(&node));
    fills(&node, "layer", &write_to("/file"), "/mnt/small2");
    assert!(!images(&node).contains(BASH_IMAGE), "images that nobody uses went first: {}", images(&node));
}

#[test]
fn files_without_content_end_the_pod_that_made_them() {
    let thresholds =
        json!({"nodefs.inodesFree": LEAST_INODES.to_string(), "imagefs.inodesFree": LEAST_INODES.to_string()});
    let node = on_disks(1, &format!("-N {INODES}"), &thresholds);
    let script = format!("cd /work; for n in $(seq {INODES}); do : > $n || break; done; exec sleep 100000");
    exhausts(&node, "files", &script, "inodes");
    wait_room(&node, "/mnt/small1", "%d", LEAST_INODES as f64);
}
