//! A disk that is full, and one that answers with errors, while a pod is being evicted for it.

use serde_json::{Value, json};

use crate::flaky::{mount_flaky, turn};
use crate::node::Node;
use crate::served::{create, get, restart, serve, wait_condition, wait_failed, wait_running};

const DISK: &str = "/mnt/flaky";
/// Below this pods go, in MiB.
const THRESHOLD: u64 = 100;

/// A node whose volumes, logs and journal are on a disk that can be told to fail; images and layers are on another one.
fn node() -> Node {
    let node = Node::without_services();
    mount_flaky(&node, 320, DISK);
    node.sh(&format!(
        "set -e; mkdir -p {DISK}/kubelet {DISK}/pods /var/lib/kubelet /var/log/pods
         mount --bind {DISK}/kubelet /var/lib/kubelet; mount --bind {DISK}/pods /var/log/pods"
    ));
    // Soft: the end of a pod takes a while.
    serve(
        &node,
        &json!({
            "evictionHard": {"memory.available": "1Mi"}, "evictionPressureTransitionPeriod": "1s",
            "evictionSoft": {"nodefs.available": format!("{THRESHOLD}Mi")},
            "evictionSoftGracePeriod": {"nodefs.available": "1s"}, "evictionMaxPodGracePeriod": 60,
        }),
    );
    create(&node, "calm", json!({"command": ["sleep", "100000"]}), json!({}));
    wait_running(&node, "calm");
    node
}

/// A pod that fills the disk, and needs half a minute for its end; returns when it was chosen.
fn begin(node: &Node, name: &str) {
    let fills = "dd if=/dev/zero of=/work/file bs=1M count=240 2> /dev/null; sync";
    let script = format!("trap 'sleep 30; exit 3' TERM; {fills}; while :; do sleep 0.5; done");
    let mounts = json!([{"name": "work", "mountPath": "/work"}]);
    let container = json!({"command": ["sh", "-c", script], "volumeMounts": mounts});
    create(
        node,
        name,
        container,
        json!({"volumes": [{"name": "work", "emptyDir": {}}], "terminationGracePeriodSeconds": 90}),
    );
    node.wait(&format!("{name} to be chosen"), || {
        let events = get(node, "namespaces/default/events")?;
        let is_it = |e: &Value| e["involvedObject"]["name"] == name && e["reason"] == "Evicted";
        if events["items"].as_array().is_some_and(|all| all.iter().any(is_it)) {
            Ok(())
        } else {
            Err(events.to_string())
        }
    });
}

/// What it came to is told, whatever its disk is like.
fn is_told(node: &Node, name: &str) {
    let status = wait_failed(node, name)["status"].clone();
    let message = status["message"].as_str().unwrap_or_default();
    println!("{name}: {message}");
    assert_eq!(status["reason"], "Evicted", "{status}");
    assert!(message.starts_with("The node was low on resource: ephemeral-storage. "), "{status}");
    let exit = &status["containerStatuses"][0]["state"]["terminated"]["exitCode"];
    assert_eq!(exit, 3, "its own end: {status}\n{}", node.log());
}

/// The daemon that was started last is still the one.
fn lives(node: &Node) {
    node.sh("grep -q bosun /proc/$(cat /run/bosun.pid)/comm");
}

/// There is room again, and a new daemon knows what the old one noted.
fn heals(node: &Node, calm: &Value, name: &str) {
    wait_condition(node, "DiskPressure", "False");
    lives(node);
    create(node, name, json!({"command": ["sleep", "100000"]}), json!({}));
    let after = wait_running(node, name);
    restart(node);
    for (name, before) in [("calm", calm), (name, &after)] {
        assert_eq!(testbed::identity(&wait_running(node, name)), testbed::identity(before), "{name} runs on");
    }
    assert_eq!(node.sh("ls /var/lib/kubelet/bosun | grep -c damaged || true").trim(), "0", "{}", node.log());
}

#[test]
fn an_eviction_comes_to_its_end_on_a_disk_that_is_full_and_on_one_that_fails() {
    let node = node();
    let calm = wait_running(&node, "calm");
    begin(&node, "full");
    // What the file system holds back for its own is given free by and by.
    node.sh(&format!("for n in 1 2 3; do cat /dev/zero >> {DISK}/ballast 2> /dev/null || true; sync; done"));
    let left: u64 = node.sh(&format!("stat -f -c %a {DISK}")).trim().parse().expect("a number");
    assert!(left < 8, "{left} blocks are left");
    is_told(&node, "full");
    lives(&node);
    node.sh(&format!("rm {DISK}/ballast"));
    heals(&node, &calm, "after-full");

    begin(&node, "fails");
    node.sh("sync");
    turn(&node, "bad");
    is_told(&node, "fails");
    lives(&node);
    turn(&node, "good");
    heals(&node, &calm, "after-fails");
    for gone in ["full", "fails"] {
        node.wait("what the pod wrote to be gone", || {
            let left = node.sh(&format!("ls -d /var/lib/kubelet/pods/uid-{gone}/volumes/*/work 2> /dev/null || true"));
            if left.is_empty() { Ok(()) } else { Err(left) }
        });
    }
}
