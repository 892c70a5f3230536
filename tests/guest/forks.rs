//! Pods that fork without end (`podPidsLimit`): the node and its other pods go on.

use serde_json::{Value, json};

use crate::node::{Node, shell, uid};

/// Processes that a pod may have.
const LIMIT: u64 = 60;

/// Each process makes two, whenever it can; the first one stays out of it.
const BOMB: &str = "bomb() { bomb | bomb & sleep 1; bomb; }; bomb & exec sleep 100000";

/// The largest number in such files of the pod's groups.
fn count(node: &Node, pod: &Value, file: &str) -> u64 {
    let group = format!("/sys/fs/cgroup/kubepods/besteffort/pod{}", uid(pod));
    // The kernel counts a refusal where the process is, not where the limit is.
    let text = node.sh(&format!("find {group} -name {file} -exec awk '{{ print $NF }}' {{}} + | sort -n | tail -n 1"));
    text.trim().parse().unwrap_or_else(|_| panic!("{group}/{file}: {text}"))
}

/// `GUEST_BOMBS` says how many.
#[test]
fn fork_bombs_have_so_many_processes_and_no_more_and_go_like_other_pods() {
    let bombs: usize = std::env::var("GUEST_BOMBS").map_or(3, |n| n.parse().expect("a number"));
    let more = 40 * u32::try_from(bombs.saturating_sub(3)).expect("it fits");
    let node = Node::with_memory(1024 + more);
    node.configure(&json!({"podPidsLimit": LIMIT}));
    node.up();
    let bomb = format!("  containers:\n{}", shell("main", BOMB, ""));
    let names: Vec<String> = (0..bombs).map(|n| format!("bomb{n}")).collect();
    for name in &names {
        node.put(name, &bomb);
    }
    let mut most = 0;
    for name in &names {
        let pod = node.wait_running(name);
        node.wait("forks to be refused", || match count(&node, &pod, "pids.events") {
            0 => Err("none yet".to_owned()),
            _ => Ok(()),
        });
        let now = count(&node, &pod, "pids.current");
        assert!(now <= LIMIT, "{name} has {now} processes");
        most = most.max(now);
    }
    let begun = std::time::Instant::now();
    node.put("calm", &format!("  containers:\n{}", shell("main", "exec sleep 100000", "")));
    node.wait_running("calm");
    println!(
        "{bombs} bombs with up to {most} processes each; another pod started in {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    for name in &names {
        node.remove(name);
    }
    for name in &names {
        node.wait_gone(name);
    }
    let left = node.sh("ls -d /sys/fs/cgroup/kubepods/besteffort/pod* | wc -l");
    assert_eq!(left.trim(), "1", "groups: that of the calm one");
    node.wait_running("calm");
}
