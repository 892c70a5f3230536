//! A node short of memory on cgroup v2, at its own pace: who goes, and who does not.

use serde_json::json;

use crate::node::Node;
use crate::served::{create, serve, wait_condition, wait_evicted, wait_running};

/// Below this pods go, in MiB.
const THRESHOLD: u64 = 200;

fn node() -> Node {
    let node = Node::without_services();
    std::fs::copy(env!("CARGO_BIN_EXE_hog"), node.guest.share_dir().join("hog")).expect("copied");
    let threshold = json!({"memory.available": format!("{THRESHOLD}Mi")});
    serve(&node, &json!({"evictionHard": threshold, "evictionPressureTransitionPeriod": "1s"}));
    node
}

/// Processes that the kernel killed for lack of memory.
fn oom_kills(node: &Node) -> u64 {
    node.sh("awk '/^oom_kill / { print $2 }' /proc/vmstat").trim().parse().expect("a number")
}

/// Bytes that the message says were left.
fn left(message: &str) -> Option<u64> {
    let amount = message.split_once(", available: ")?.1.split_once('.')?.0;
    let (number, unit) = amount.strip_suffix("Ki").map_or((amount, 1), |n| (n, 1024));
    let (number, unit) = number.strip_suffix("Mi").map_or((number, unit), |n| (n, 1 << 20));
    Some(number.parse::<u64>().ok()? * unit)
}

/// One that takes memory at such a pace goes, and nobody else, before the kernel kills anybody.
fn burst(node: &Node, mib_per_second: u32) {
    let (name, before) = (format!("hog-{mib_per_second}"), oom_kills(node));
    let innocents = ["calm", "dear"].map(|name| wait_running(node, name));
    let command = json!(["chroot", "/host", "/share/hog", mib_per_second.to_string()]);
    let requests = json!({"requests": {"memory": "1Mi"}});
    let mounts = json!([{"name": "host", "mountPath": "/host"}]);
    let container = json!({"command": command, "resources": requests, "volumeMounts": mounts});
    create(node, &name, container, json!({"volumes": [{"name": "host", "hostPath": {"path": "/"}}]}));
    let message = wait_evicted(node, &name);
    let left = left(&message).unwrap_or_else(|| panic!("{message}"));
    println!(
        "{mib_per_second} MiB/s: evicted with {} MiB left of a threshold of {THRESHOLD} MiB: {message}",
        left >> 20
    );
    assert_eq!(oom_kills(node), before, "the kernel killed nobody");
    for innocent in innocents {
        let name = innocent["metadata"]["name"].as_str().expect("a name");
        assert_eq!(testbed::identity(&wait_running(node, name)), testbed::identity(&innocent), "{name} runs on");
    }
    wait_condition(node, "MemoryPressure", "False");
}

#[test]
fn who_takes_all_memory_goes_before_the_kernel_kills_anybody_however_fast_it_is() {
    let node = node();
    let sleeps = json!(["sleep", "100000"]);
    let requests = json!({"memory": "32Mi"});
    create(&node, "calm", json!({"command": sleeps, "resources": {"requests": requests}}), json!({}));
    let dear = json!({"command": sleeps, "resources": {"requests": requests, "limits": requests}});
    create(&node, "dear", dear, json!({}));
    for name in ["calm", "dear"] {
        wait_running(&node, name);
    }
    for pace in [50, 200, 1000] {
        burst(&node, pace);
    }
}
