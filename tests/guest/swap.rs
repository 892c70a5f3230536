//! Real swap (`memorySwap.swapBehavior`): who may use it, how much, and who dies without.

use serde_json::{Value, json};
use testbed::plain_id;

use crate::node::Node;
use crate::served::{create, pod, serve, wait_running};

/// Size of the swap file, in MiB.
const SWAP: u64 = 256;

fn node(behavior: &str) -> Node {
    let node = Node::without_services();
    node.sh(&format!(
        "set -e; dd if=/dev/zero of=/var/swap bs=1M count={SWAP} 2> /dev/null; chmod 600 /var/swap; mkswap -q /var/swap; swapon /var/swap"
    ));
    serve(&node, &json!({"memorySwap": {"swapBehavior": behavior}}));
    node
}

fn with_memory(request: &str, limit: &str, script: &str) -> Value {
    let resources = json!({"requests": {"memory": request, "cpu": "10m"}, "limits": {"memory": limit, "cpu": "500m"}});
    json!({"command": ["sh", "-c", script], "resources": resources})
}

/// What a file of the container's group holds.
fn value(node: &Node, pod: &Value, file: &str) -> String {
    let id = pod["status"]["containerStatuses"][0]["containerID"].as_str().expect("an id");
    let id = plain_id(id);
    node.sh(&format!("cat $(find /sys/fs/cgroup/kubepods -type d -name {id})/{file}")).trim().to_owned()
}

/// Takes a little more than its limit of 40 MiB, and then waits: a file in memory, which counts and can be swapped.
const TAKES: &str =
    "mkdir /m; dd if=/dev/zero of=/dev/shm/f bs=1M count=44 && echo done > /dev/termination-log; exec sleep 100000";

#[test]
fn with_limited_swap_a_burstable_container_swaps_its_part_and_others_nothing() {
    let node = node("LimitedSwap");
    create(&node, "part", with_memory("32Mi", "40Mi", TAKES), json!({}));
    create(&node, "full", with_memory("40Mi", "40Mi", "exec sleep 100000"), json!({}));
    let none = json!({"command": ["sleep", "100000"]});
    create(&node, "none", none, json!({}));
    let [part, full, none] = ["part", "full", "none"].map(|name| wait_running(&node, name));
    let memory: u64 = node.sh("awk '/^MemTotal:/ { print $2 * 1024 }' /proc/meminfo").trim().parse().expect("a number");
    let total: u64 = node.sh("awk '/^SwapTotal:/ { print $2 * 1024 }' /proc/meminfo").trim().parse().expect("a number");
    let share = u64::try_from(u128::from(total) * (32 << 20) / u128::from(memory)).expect("it fits");
    let most: u64 = value(&node, &part, "memory.swap.max").parse().expect("a number");
    // The kernel keeps whole pages.
    assert!(most <= share && most + 4096 > share, "{most} of {share}");
    assert_eq!([&full, &none].map(|pod| value(&node, pod, "memory.swap.max")), ["0", "0"]);
    node.wait("it to swap", || match value(&node, &part, "memory.swap.current").as_str() {
        "0" => Err("nothing yet".to_owned()),
        _ => Ok(()),
    });
    println!("request 32 MiB of {} MiB: {} KiB of {} MiB swap", memory >> 20, most >> 10, total >> 20);
}

#[test]
fn without_swap_of_its_own_a_container_dies_over_its_limit_beside_free_swap() {
    let node = node("NoSwap");
    create(&node, "part", with_memory("32Mi", "40Mi", TAKES), json!({"restartPolicy": "Never"}));
    let ended = node.wait("it to be killed", || {
        let pod = pod(&node, "part")?;
        let end = pod["status"]["containerStatuses"][0]["state"]["terminated"].clone();
        if end.is_object() { Ok(end) } else { Err(pod["status"].to_string()) }
    });
    assert_eq!(ended["reason"], "OOMKilled", "{ended}");
    // The machine's own processes may swap.
    let used: u64 = node.sh("awk 'NR > 1 { print $4 }' /proc/swaps").trim().parse().expect("a number");
    assert!(used < 2048, "{used} KiB were swapped");
}
