//! The power goes while volumes are set up and torn down.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use testbed::let_pass;

use crate::node::{Node, PODS, shell, uid};

/// Pods that stay.
const STAYS: [&str; 2] = ["stays-a", "stays-b"];

/// Keeps what it wrote first in each of its volumes, and says so in the user's directory as often as it starts.
fn pod(name: &str) -> String {
    let mounts = "    volumeMounts:\n    - {name: disk, mountPath: /disk}\n    - {name: memory, mountPath: /memory}\n    \
                  - {name: users, mountPath: /users}\n    - {name: users, mountPath: /part, subPath: part}\n";
    let script = format!(
        "[ -e /disk/first ] || {{ date +%s%N > /disk/first; sync; }}; cat /disk/first > /memory/first; \
                          cat /disk/first >> /part/{name}; sync; exec sleep 100000"
    );
    let volumes = "  volumes:\n  - {name: disk, emptyDir: {}}\n  - {name: memory, emptyDir: {medium: Memory}}\n  \
                   - {name: users, hostPath: {path: /srv/users, type: Directory}}\n";
    format!("  containers:\n{}{volumes}", shell("main", &script, mounts))
}

/// What must hold whenever the pods that are wanted run, and the others are gone.
fn check(node: &Node, wanted: &[Value], files: &str) {
    let uids: BTreeSet<&str> = wanted.iter().map(uid).collect();
    node.wait("what is left of pods that went to be gone", || {
        let folders = node.sh(&format!("ls {PODS}"));
        let mounts = node.sh(&format!("awk '$2 ~ \"^{PODS}/\" {{ print $2 }}' /proc/self/mounts"));
        let of_mounts = mounts.lines().filter_map(|m| m.strip_prefix(PODS)?.split('/').nth(1));
        let strange: Vec<&str> = folders.lines().chain(of_mounts).filter(|uid| !uids.contains(uid)).collect();
        if strange.is_empty() { Ok(()) } else { Err(format!("{strange:?}\n{mounts}")) }
    });
    for pod in wanted {
        let volumes = format!("{PODS}/{}/volumes/kubernetes.io~empty-dir", uid(pod));
        node.wait("the pod's own script to have come to its end", || {
            let first = node.sh(&format!("cat {volumes}/disk/first"));
            let memory = node.sh(&format!("cat {volumes}/memory/first 2> /dev/null || true"));
            if !first.is_empty() && memory == first { Ok(()) } else { Err(format!("{first:?} {memory:?}")) }
        });
        let kind = node.sh(&format!("stat -f -c %T {volumes}/memory {volumes}/disk"));
        assert_eq!(kind.lines().next(), Some("tmpfs"), "{kind}");
        assert_ne!(kind.lines().nth(1), Some("tmpfs"), "{kind}");
    }
    assert_eq!(node.sh("cd /srv/users; cat keep/*; cat one"), files, "users' files are as they were");
}

/// What each pod wrote first; a power cut must not take it.
fn first_of(node: &Node, pod: &Value) -> String {
    node.sh(&format!("cat {PODS}/{}/volumes/kubernetes.io~empty-dir/disk/first", uid(pod)))
}

#[test]
fn after_a_power_cut_volumes_are_whole_nothing_is_mounted_that_nobody_wants_and_users_files_are_there() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |v| v.parse().expect("a number"));
    let (cuts, seed) = (number("GUEST_CUTS", 2), number("GUEST_CUTS_SEED", 1));
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut node = Node::start();
    node.sh("mkdir -p /srv/users/keep /srv/users/part; cd /srv/users; echo one > one; \
             for n in $(seq 20); do echo $n > keep/$n; done; sync");
    let files = node.sh("cd /srv/users; cat keep/*; cat one");
    for name in STAYS {
        node.put(name, &pod(name));
    }
    let mut pods: Vec<Value> = STAYS.map(|name| node.wait_running(name)).into();
    check(&node, &pods, &files);
    let firsts: Vec<String> = pods.iter().map(|p| first_of(&node, p)).collect();
    for cut in 0..cuts {
        // One comes and one goes. The folder of manifests is brought to the disk, or the power cut would take that back.
        let (comes, goes) = (format!("comes-{cut}"), format!("comes-{}", cut.wrapping_sub(1)));
        node.put(&comes, &pod(&comes));
        if cut > 0 {
            node.remove(&goes);
        }
        node.sh("sync /etc/kubernetes/manifests/* /etc/kubernetes/manifests");
        let pause = Duration::from_millis(rng.u64(..12_000));
        let_pass(pause);
        node.cut_power();
        println!("cut {cut} after {pause:?} (seed {seed})");
        pods = STAYS.into_iter().chain([comes.as_str()]).map(|name| node.wait_running(name)).collect();
        check(&node, &pods, &files);
        let now: Vec<String> = pods.iter().take(STAYS.len()).map(|p| first_of(&node, p)).collect();
        assert_eq!(now, firsts, "what was written and synced is there after cut {cut}");
        assert_eq!(node.sh("ls /var/lib/kubelet/bosun/ | grep -c damaged || true").trim(), "0", "the journal is whole");
    }
}
