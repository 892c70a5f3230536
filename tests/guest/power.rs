//! The power goes while volumes are set up and torn down, pods start and end, and one crashes again and again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::let_pass;

use crate::claims::{create_claim, mounts, with_claim};
use crate::node::{Node, PODS, has_own_runtime, shell, uid};
use crate::served::{create, serve_api, start, wait_running};

mod own;

use own::{Ended, Own};

/// Pods that stay.
const STAYS: [&str; 2] = ["stays-a", "stays-b"];
/// A pod whose container ends at once, whenever it is started.
const CRASHES: &str = "crashes";
/// The longest back-off, in seconds: it is reached with the second, and the pods that stay are held by it, too.
const LONGEST: u64 = 12;
/// The first one, in seconds.
const FIRST: u64 = 10;

/// Keeps what it wrote first in each of its volumes, and says so in the user's directory as often as it starts.
fn pod(name: &str) -> String {
    let mounts = "    volumeMounts:\n    - {name: disk, mountPath: /disk}\n    - {name: memory, mountPath: /memory}\n    \
                  - {name: users, mountPath: /users}\n    - {name: users, mountPath: /part, subPath: part}\n";
    // Only its own files are brought to the disk: what the daemon forgot to bring there must not be by chance.
    let script = format!(
        "[ -e /disk/first ] || {{ date +%s%N > /disk/first; sync /disk/first /disk; }}; cat /disk/first >> /part/{name}
         sync /part/{name} /part; cat /disk/first > /memory/first; exec sleep 100000"
    );
    let volumes = "  volumes:\n  - {name: disk, emptyDir: {}}\n  - {name: memory, emptyDir: {medium: Memory}}\n  \
                   - {name: users, hostPath: {path: /srv/users, type: Directory}}\n";
    format!("  containers:\n{}{volumes}", shell("main", &script, mounts))
}

/// What the users had before any pod.
const FILES: &str = "cd /srv/users; cat keep/*; cat one";

fn restarts(pod: &Value) -> u64 {
    pod["status"]["containerStatuses"][0]["restartCount"].as_u64().expect("a count")
}

/// Prints a line per thing that the node has of pods: its kind and the UID of its pod, or just its kind.
const HAS: &str = "ls PODS | sed 's/^/folder /'; ls /var/log/pods | sed 's/.*_/logs /'
    awk '$2 ~ \"^PODS/\" { split($2, p, \"/\"); print \"mount \" p[6] }' /proc/self/mounts
    cd /sys/fs/cgroup/kubepods; ls -d pod* */pod* 2> /dev/null | sed 's/.*pod/cgroup /'
    grep -ho '\"uid\": *\"[^\"]*' /var/lib/bosun/runtime/pods/*/sandbox.json 2> /dev/null | sed 's/.*\"/record /'
    ps -eo args | sed -n 's/^.pause$/sandbox/p; s/^[^ ]*bosun-pod run .*/sandbox/p; s/^sleep 100000$/container/p'";

/// Nothing of other pods is here, and nothing of these is here twice: folders, mounts, cgroups, logs, sandboxes. One of them
/// crashes, so its container is at times not there. Addresses are the network plugin's: it keeps one that it gave to a sandbox
/// of which containerd had not made a note yet.
fn only(node: &Node, wanted: &BTreeSet<&str>) {
    node.wait("what is left of pods that went to be gone", || {
        let all = node.sh(&HAS.replace("PODS", PODS));
        let is_strange = |line: &&str| line.split_once(' ').is_some_and(|(_, uid)| !wanted.contains(uid));
        let strange: Vec<&str> = all.lines().filter(is_strange).collect();
        let count = |kind: &str| all.lines().filter(|line| *line == kind).count();
        let counts = ["sandbox", "container"].map(count);
        let right = counts == [wanted.len(), wanted.len() - 1];
        if strange.is_empty() && right { Ok(()) } else { Err(format!("{strange:?} {counts:?}\n{all}")) }
    });
}

/// What must hold of the volumes, the users' files and the journal whenever the pods that are wanted run.
fn check(node: &Node, wanted: &[Value], files: &str) {
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
    assert_eq!(node.sh(FILES), files, "users' files are as they were");
    assert_eq!(node.sh("ls /var/lib/kubelet/bosun/ | grep -c damaged || true").trim(), "0", "the journal is whole");
}

/// What each pod wrote first; a power cut must not take it.
fn first_of(node: &Node, pod: &Value) -> String {
    node.sh(&format!("cat {PODS}/{}/volumes/kubernetes.io~empty-dir/disk/first", uid(pod)))
}

/// Waits until the pod that crashes waits for so many seconds; answers how often it was started again.
fn wait_back_off(node: &Node, known: u64, seconds: &[u64]) -> u64 {
    let words: Vec<String> = seconds.iter().map(|s| format!("back-off {s}s ")).collect();
    node.wait("the back-off of the pod that crashes", || {
        let pod = node.pod(CRASHES)?.ok_or("no such pod")?;
        let message = pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"].as_str();
        let message = message.filter(|m| m.starts_with("back-off ")).ok_or_else(|| pod["status"].to_string())?;
        assert!(words.iter().any(|w| message.starts_with(w)), "{message}, not {words:?}");
        assert!(restarts(&pod) >= known, "{} starts, {known} known: {pod}", restarts(&pod));
        if message.starts_with(words.last().expect("a word")) { Ok(restarts(&pod)) } else { Err(message.to_owned()) }
    })
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| v.parse().expect("a number"))
}

fn prepared() -> (Node, String) {
    let node = Node::without_services();
    node.configure(&json!({
        "featureGates": {"KubeletCrashLoopBackOffMax": true},
        "crashLoopBackOff": {"maxContainerRestartPeriod": format!("{LONGEST}s")},
    }));
    node.sh("mkdir -p /srv/users/keep /srv/users/part; cd /srv/users; echo one > one; \
             for n in $(seq 20); do echo $n > keep/$n; done; sync");
    let files = node.sh(FILES);
    node.up();
    for name in STAYS {
        node.put(name, &pod(name));
    }
    node.put(CRASHES, &format!("  containers:\n{}", shell("main", "exit 7", "")));
    (node, files)
}

#[test]
fn after_a_power_cut_all_is_as_it_was_nothing_is_here_twice_and_counts_and_back_off_go_on() {
    let (cuts, seed) = (number("GUEST_CUTS", 2), number("GUEST_CUTS_SEED", 1));
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut node, files) = prepared();
    let mut pods: Vec<Value> = STAYS.map(|name| node.wait_running(name)).into();
    let mut crashed = wait_back_off(&node, 0, &[FIRST, LONGEST]);
    check(&node, &pods, &files);
    let firsts: Vec<String> = pods.iter().map(|p| first_of(&node, p)).collect();
    let own = has_own_runtime().then(|| Own::prepare(&node));
    for cut in 0..cuts {
        let ended = own.as_ref().map(|_| Ended::wait(&node, cut));
        // One comes and one goes. The folder of manifests is brought to the disk, or the power cut would take that back.
        let (comes, goes) = (format!("comes-{cut}"), format!("comes-{}", cut.wrapping_sub(1)));
        node.put(&comes, &pod(&comes));
        if cut > 0 {
            node.remove(&goes);
        }
        node.sh("sync /etc/kubernetes/manifests/* /etc/kubernetes/manifests");
        let pause = Duration::from_millis(rng.u64(..12_000));
        let_pass(pause);
        if own.is_some() {
            Own::import_meanwhile(&node);
            let_pass(Duration::from_millis(rng.u64(..4_000)));
        }
        let off = Instant::now();
        node.cut_power();
        let answers = off.elapsed();
        pods = STAYS.into_iter().chain([comes.as_str()]).map(|name| node.wait_running(name)).collect();
        let runs = off.elapsed();
        check(&node, &pods, &files);
        let now: Vec<String> = pods.iter().take(STAYS.len()).map(|p| first_of(&node, p)).collect();
        assert_eq!(now, firsts, "what was written and synced is there after cut {cut}");
        for (name, pod) in STAYS.iter().zip(&pods) {
            let starts = node.sh(&format!("cat /srv/users/part/{name}")).lines().count() as u64;
            let counts = (restarts(pod), starts);
            assert_eq!(counts, (cut + 1, cut + 2), "restarts and starts of {name} after cut {cut}: {pod}");
        }
        // From a journal that was lost it would begin with the first one again.
        crashed = wait_back_off(&node, crashed, &[LONGEST]);
        let all = node.pod(CRASHES).expect("an answer").expect("a pod");
        ended.into_iter().for_each(|pod| pod.check(&node));
        only(&node, &pods.iter().chain([&all]).map(uid).collect());
        if let Some(own) = &own {
            own::has_only(&node, pods.len() + 1);
            own.check(&node);
        }
        println!(
            "cut {cut} after {pause:.1?} (seed {seed}): bosun answers after {answers:.0?}, all pods run after {runs:.0?}, \
             all is checked after {:.0?}; {crashed} restarts of the one that crashes",
            off.elapsed()
        );
    }
}

/// Disks of the node, one per claim. The administrator's part after each start.
const DISKS: [(&str, &str); 2] = [("stays", "/dev/loop6"), ("comes", "/dev/loop7")];

/// API server, disks and claims, the pod that stays and the one that is here for this cut; then the services.
fn with_claims(node: &Node, cut: u64) {
    serve_api(node, &json!({}));
    for (name, device) in DISKS {
        node.sh(&format!(
            "set -e; truncate -s 64M /srv/{name}.img; sync /srv/{name}.img /srv; losetup {device} /srv/{name}.img"
        ));
        create_claim(node, name, device);
    }
    for (claim, name) in [("stays", "stays".to_owned()), ("comes", format!("comes-{cut}"))] {
        let script =
            "[ -e /disk/first ] || date +%s%N > /disk/first; echo started >> /disk/starts; sync; exec sleep 100000";
        let (container, spec) = with_claim(claim, script);
        create(node, &name, container, spec);
    }
    start(node);
}

#[test]
fn after_a_power_cut_claims_are_mounted_once_for_their_pods_and_what_was_synced_is_there() {
    let (cuts, seed) = (number("GUEST_CUTS", 2), number("GUEST_CUTS_SEED", 1));
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut node = Node::without_services();
    with_claims(&node, 0);
    let mut first = None;
    for cut in 0..=cuts {
        let comes = format!("comes-{cut}");
        let [stays, _] = ["stays", comes.as_str()].map(|name| wait_running(&node, name));
        for (name, device) in DISKS {
            let pod = if name == "stays" { "uid-stays".to_owned() } else { format!("uid-{comes}") };
            let volume = format!("{PODS}/{pod}/volumes/kubernetes.io~local-volume/{name}");
            node.wait("the pod's script", || {
                let starts = node.sh(&format!("cat {volume}/starts 2> /dev/null || true")).lines().count() as u64;
                if starts == cut + 1 { Ok(()) } else { Err(format!("{starts} starts with {name} after {cut} cuts")) }
            });
            let mut at = mounts(&node, device);
            at.sort();
            let shared = format!("/var/lib/kubelet/plugins/kubernetes.io/local-volume/mounts/{name}");
            assert_eq!(at, [shared, volume.clone()], "after {cut} cuts");
            if name == "stays" {
                let now = node.sh(&format!("cat {volume}/first"));
                assert_eq!(first.get_or_insert_with(|| now.clone()), &now, "what was synced is there");
            }
        }
        node.wait("what is left of pods that went to be gone", || {
            let all = node.sh(&format!("ls {PODS}"));
            if all == format!("uid-{comes}\nuid-stays\n") { Ok(()) } else { Err(all) }
        });
        assert_eq!(node.sh("ls /var/lib/kubelet/bosun/ | grep -c damaged || true").trim(), "0", "the journal is whole");
        println!("after {cut} cuts (seed {seed}): {} restarts of the pod that stays", restarts(&stays));
        if cut < cuts {
            // The one that came goes while the power does; the next one has its disk.
            crate::served::delete(&node, &comes);
            let_pass(Duration::from_millis(rng.u64(..3_000)));
            node.guest.power_on().unwrap_or_else(|e| panic!("{e}"));
            with_claims(&node, cut + 1);
        }
    }
}
