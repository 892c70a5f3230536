//! Pods that fork without end (`podPidsLimit`): the node and its other pods go on.

use serde_json::{Value, json};

use crate::node::{Node, shell, uid};

/// Processes that a pod may have.
const LIMIT: u64 = 60;

/// Waits for the fuse; then each process makes two, whenever it can. The first one stays out of it. Without a fuse a hundred of
/// them never come to start on one slow processor: each has the hundredth part of it, while the first ones bomb.
const BOMB: &str = "while [ ! -e /fuse/lit ]; do sleep 3; done
    bomb() { bomb | bomb & sleep 1; bomb; }; bomb & exec sleep 100000";

/// Where the fuse is, outside and inside.
const FUSE: &str = "  volumes:\n  - {name: fuse, hostPath: {path: /srv/fuse, type: DirectoryOrCreate}}\n";
const SEEN: &str = "    volumeMounts: [{name: fuse, mountPath: /fuse}]\n";

/// A pod that is served before those that ask for nothing.
const CALM: &str = "    resources: {requests: {cpu: 300m}}\n";

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
    let bomb = format!("  containers:\n{}{FUSE}", shell("main", BOMB, SEEN));
    let names: Vec<String> = (0..bombs).map(|n| format!("bomb{n}")).collect();
    // In groups: of a hundred that a slow machine starts at once, none is done in the time that the runtime has for it.
    let start = |group: &[String]| -> Vec<Value> {
        group.iter().for_each(|name| node.put(name, &bomb));
        group.iter().map(|name| node.wait_running(name)).collect()
    };
    let pods: Vec<Value> = names.chunks(10).flat_map(start).collect();
    node.sh("touch /srv/fuse/lit");
    let mut most = 0;
    for (name, pod) in names.iter().zip(&pods) {
        node.wait("forks to be refused", || match count(&node, pod, "pids.events") {
            0 => Err("none yet".to_owned()),
            _ => Ok(()),
        });
        let now = count(&node, pod, "pids.current");
        assert!(now <= LIMIT, "{name} has {now} processes");
        most = most.max(now);
    }
    let begun = std::time::Instant::now();
    node.put("calm", &format!("  containers:\n{}", shell("main", "exec sleep 100000", CALM)));
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
    let left = node.sh("find /sys/fs/cgroup/kubepods/besteffort -maxdepth 1 -name 'pod*' | wc -l");
    assert_eq!(left.trim(), "0", "groups of pods that ask for nothing");
    node.wait_running("calm");
}
