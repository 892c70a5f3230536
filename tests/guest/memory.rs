//! A node short of memory on cgroup v2, at its own pace: who goes, in which order, how soon, and who does not; beside a Go kubelet.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::beside::Agent;
use crate::node::Node;
use crate::served::{create, pod, wait_condition, wait_evicted, wait_running};
use crate::told::{chosen_at, told};

/// Below this pods go, in MiB.
const THRESHOLD: u64 = 200;
/// So much more may be gone before an agent that looks every ten seconds looks.
const SLOW: u32 = 8;
/// The node must not be silent for longer while pods go one after the other, in milliseconds.
const SILENT: u64 = 10_000;
const RECORDING: &str = "tests/golden/eviction/order-kubelet-1.36.2.json";

fn node(agent: Agent, memory_mib: u32, threshold: u64) -> Node {
    let node = Node::with_memory(memory_mib);
    node.bring(env!("CARGO_BIN_EXE_hog"));
    node.sh("mount -o remount,size=100% /dev/shm");
    let healthz = node.bring(env!("CARGO_BIN_EXE_healthz"));
    let threshold = json!({"memory.available": format!("{threshold}Mi")});
    agent.serve(&node, &json!({"evictionHard": threshold, "evictionPressureTransitionPeriod": "1s"}));
    node.sh(&format!("setsid {healthz} 127.0.0.1:10248 /run/healthz > /dev/null 2>&1 < /dev/null &"));
    node
}

/// The longest time without an answer of the agent so far, in milliseconds, and how many answers there were.
fn silence(node: &Node) -> (u64, u64) {
    let text = node.sh("cat /run/healthz");
    let mut numbers = text.split_whitespace().map(|n| n.parse().expect("a number"));
    (numbers.next().expect("a time"), numbers.next().expect("a count"))
}

/// Names of processes that the kernel killed for lack of memory.
fn killed(node: &Node) -> Vec<String> {
    let text = node.sh("dmesg | sed -n 's/.*Killed process [0-9]* (\\([^)]*\\)).*/\\1/p'");
    text.lines().map(str::to_owned).collect()
}

/// Bytes that the message says were left.
fn left(message: &str) -> Option<u64> {
    let amount = message.split_once(", available: ")?.1.split_once('.')?.0;
    let (number, unit) = amount.strip_suffix("Ki").map_or((amount, 1), |n| (n, 1024));
    let (number, unit) = number.strip_suffix("Mi").map_or((number, unit), |n| (n, 1 << 20));
    Some(number.parse::<u64>().ok()? * unit)
}

/// A pod whose container runs the program that takes memory, with these words.
fn hog(node: &Node, name: &str, words: &str, request: &str, priority: i32) {
    let mut command = vec!["chroot", "/host", "/share/hog"];
    command.extend(words.split_whitespace());
    let requests = json!({"requests": {"memory": request}});
    let mounts = json!([{"name": "host", "mountPath": "/host"}]);
    let container = json!({"command": command, "resources": requests, "volumeMounts": mounts});
    let volumes = json!([{"name": "host", "hostPath": {"path": "/"}}]);
    create(node, name, container, json!({"volumes": volumes, "priority": priority}));
}

/// One that takes memory at such a pace goes; says how long it lived below the threshold, and how little was left in the end.
fn pace(node: &Node, name: &str, mib_per_second: u32, threshold: u64) -> (String, String) {
    hog(node, name, &format!("{mib_per_second} {threshold} /run/{name}"), "1Mi", 0);
    let message = wait_evicted(node, name);
    let text = node.sh(&format!("cat /run/{name}"));
    let numbers: Vec<u64> = text.split_whitespace().map(|n| n.parse().expect("a number")).collect();
    let [lived, least, taken] = numbers.as_slice() else { panic!("{text}") };
    let really = taken * 1000 / lived.max(&1);
    let figures = format!(
        "killed {lived} ms after the threshold of {threshold} MiB was crossed, took {taken} MiB in this time ({really} MiB/s), \
         at least {least} MiB were left"
    );
    (message, figures)
}

/// One that takes memory at such a pace goes, and nobody else. The kernel may kill it before the runtime has, which has to start
/// programs for that, but nobody else.
fn burst(node: &Node, mib_per_second: u32) {
    let before = killed(node).len();
    let innocents = ["calm", "dear"].map(|name| wait_running(node, name));
    let (message, figures) = pace(node, &format!("hog-{mib_per_second}"), mib_per_second, THRESHOLD);
    let left = left(&message).unwrap_or_else(|| panic!("{message}"));
    let (silent, killed) = (silence(node), killed(node).split_off(before));
    println!(
        "{mib_per_second} MiB/s: chosen with {} MiB left, {figures}; longest silence {silent:?} ms; killed by the kernel: {killed:?}",
        left >> 20
    );
    assert!(killed.iter().all(|name| name == "hog"), "{killed:?}");
    for innocent in innocents {
        let name = innocent["metadata"]["name"].as_str().expect("a name");
        assert_eq!(testbed::identity(&wait_running(node, name)), testbed::identity(&innocent), "{name} runs on");
    }
    node.sh("for name in bosun containerd; do grep -q $name /proc/$(cat /run/$name.pid)/comm; done");
    wait_condition(node, "MemoryPressure", "False");
}

#[test]
fn who_takes_all_memory_goes_alone_however_fast_it_is_and_the_daemon_answers() {
    let node = node(Agent::Bosun, 1024, THRESHOLD);
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
    let before = silence(&node).1;
    node.wait("the daemon to answer", || match silence(&node).1 {
        now if now > before => Ok(()),
        now => Err(format!("{now} answers")),
    });
}

/// Name, what it takes (MiB), its request and priority.
const PODS: [(&str, u32, &str, i32); 5] = [
    ("less", 60, "1Mi", 0),
    ("much", 120, "1Mi", 0),
    ("dearer", 100, "1Mi", 100),
    ("dearest", 60, "1Mi", 1000),
    ("within", 60, "150Mi", -5),
];

/// Something beside the pods takes so much that three of the five must go; then one takes memory slowly.
fn order(agent: Agent) -> Value {
    const SHORT: u64 = 400;
    let node = node(agent, 1536, SHORT);
    for (name, takes, request, priority) in PODS {
        hog(&node, name, &format!("hold {takes}"), request, priority);
    }
    PODS.iter().for_each(|(name, ..)| drop(wait_running(&node, name)));
    node.wait("each to have what it takes", || {
        let text = node.sh("awk '/^Shmem:/ { print $2 / 1024 }' /proc/meminfo");
        let wanted: u32 = PODS.iter().map(|pod| pod.1).sum();
        if text.trim().parse::<f64>().is_ok_and(|mib| mib >= f64::from(wanted)) { Ok(()) } else { Err(text) }
    });
    // The first two bring less than is missing, with all that goes with a pod; the third one more than that.
    node.sh(&format!(
        "setsid /share/hog until {} > /run/hog.out 2>&1 < /dev/null & echo $! > /run/hog.pid",
        SHORT - 255
    ));
    let gone = ["much", "less", "dearer"];
    let mut seen: Vec<(String, &str)> = gone.iter().map(|name| (chosen_at(&node, name), *name)).collect();
    seen.sort();
    for name in ["dearest", "within"] {
        assert_eq!(pod(&node, name).expect("an answer")["status"]["phase"], "Running", "{name}");
    }
    println!("{agent:?}: {seen:?}; longest silence {:?} ms", silence(&node));
    node.sh("kill -9 $(cat /run/hog.pid)");
    wait_condition(&node, "MemoryPressure", "False");
    let (_, figures) = pace(&node, "slow", SLOW, SHORT);
    println!("{agent:?}: {SLOW} MiB/s: {figures}");
    assert_eq!(killed(&node), [""; 0], "the kernel killed nobody");
    let silent = silence(&node).0;
    assert!(silent < SILENT * u64::from(testbed::patience()), "{agent:?} was silent for {silent} ms");
    for name in ["dearest", "within"] {
        assert_eq!(pod(&node, name).expect("an answer")["status"]["phase"], "Running", "{name}");
    }
    let order: Vec<&str> = seen.iter().map(|(_, name)| *name).collect();
    let all: Vec<Value> = order.iter().chain(&["slow"]).map(|name| told(&node, name)).collect();
    json!({"order": order, "told": all})
}

fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(RECORDING)
}

#[test]
fn victims_go_one_after_the_other_in_the_order_and_with_the_words_of_a_kubelet() {
    let text = std::fs::read_to_string(recording()).expect("the recording");
    let recorded: Value = serde_json::from_str(&text).expect("JSON");
    let seen = order(Agent::Bosun);
    assert_eq!(seen, recorded, "{seen:#}");
}

#[cfg(feature = "kubelet")]
#[test]
fn record_the_order_of_a_kubelet() {
    let seen = order(Agent::Kubelet);
    std::fs::write(recording(), serde_json::to_string_pretty(&seen).expect("JSON") + "\n").expect("the recording");
}
