//! Supervisors of pods that are killed or mute, where systemd makes the groups: each is in a scope of its own, by which it is ended with what it has
//! started.

use serde_json::Value;

use crate::cgroups::{container, number};
use crate::node::{Node, shell};
use crate::systemd::{ALL, SHARED, wait_nothing_left};

/// The parent of a container's first process.
fn supervisor(node: &Node, pod: &Value) -> u32 {
    let procs = format!("find /sys/fs/cgroup/{ALL} -path '*{}*' -name cgroup.procs", container(pod, "main"));
    number(node, &format!("awk '/^PPid:/ {{ print $2 }}' /proc/$(head -n 1 $({procs}))/status"))
}

#[test]
fn a_pod_goes_without_a_trace_when_its_supervisor_is_killed_or_mute() {
    let node = Node::of_systemd();
    let waits = shell("main", "exec sleep 100000", "");
    node.put("killed", &format!("{SHARED}  containers:\n{waits}"));
    node.put("mute", &format!("  containers:\n{waits}"));
    let [killed, mute] = ["killed", "mute"].map(|name| node.wait_running(name));
    let (killed, mute) = (supervisor(&node, &killed), supervisor(&node, &mute));
    node.sh(&format!("kill -9 {killed}; kill -STOP {mute}"));
    for name in ["killed", "mute"] {
        node.remove(name);
    }
    for name in ["killed", "mute"] {
        node.wait_gone(name);
    }
    wait_nothing_left(&node);
}
