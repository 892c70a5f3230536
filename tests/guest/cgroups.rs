//! What the kernel was told about tiers, pods and containers on cgroup v2, what is told of its counters, and what it does when a
//! container takes too much.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use testbed::plain_id;

use crate::node::{Node, shell, uid};

/// By group below that of all pods (`.` is itself) and file.
pub(crate) type Values = BTreeMap<(String, String), String>;

const FILES: [&str; 9] = [
    "cpu.weight",
    "cpu.max",
    "memory.max",
    "pids.max",
    "memory.swap.max",
    "memory.oom.group",
    "memory.min",
    "memory.low",
    "memory.high",
];

/// A group, and what its files hold; those after the sixth are everywhere as the kernel makes them: a kubelet's gate `MemoryQoS`
/// is off.
pub(crate) type Row<'a> = (String, [&'a str; 6]);

fn values(node: &Node) -> Values {
    values_below(node, "kubepods")
}

/// What the files hold of a group at the top and of those below it.
pub(crate) fn values_below(node: &Node, top: &str) -> Values {
    let names = FILES.map(|f| format!("-name {f}")).join(" -o ");
    // Groups may go while they are read.
    let text =
        node.sh(&format!("set -e; cd /sys/fs/cgroup/{top}; find . \\( {names} \\) -exec grep -sH . {{}} + || true"));
    let row = |line: &str| {
        let (path, value) = line.split_once(':').expect("path and value");
        let (group, file) = path.rsplit_once('/').expect("group and file");
        ((group.trim_start_matches("./").to_owned(), file.to_owned()), value.to_owned())
    };
    text.lines().map(row).collect()
}

pub(crate) fn expect(values: &Values, rows: &[Row<'_>]) {
    let untouched = ["0", "0", "max"];
    for (group, wanted) in rows {
        let wanted: Vec<&str> = wanted.iter().chain(&untouched).copied().collect();
        let is: Vec<&str> =
            FILES.iter().map(|f| values.get(&(group.clone(), (*f).to_owned())).map_or("", String::as_str)).collect();
        assert_eq!(is, wanted, "{FILES:?} of {group}");
    }
}

/// Who goes first when the machine has no memory left, as the kernel has it of the first process of a group.
fn score(node: &Node, group: &str) -> i64 {
    number(node, &format!("read -r pid < /sys/fs/cgroup/kubepods/{group}/cgroup.procs; cat /proc/$pid/oom_score_adj"))
}

pub(crate) fn number<T: std::str::FromStr>(node: &Node, script: &str) -> T {
    let text = node.sh(script);
    text.trim().parse().unwrap_or_else(|_| panic!("{script}: {text}"))
}

/// The id of a container, which is its group's name below that of its pod.
pub(crate) fn container<'a>(pod: &'a Value, name: &str) -> &'a str {
    let all = pod["status"]["containerStatuses"].as_array().expect("containers");
    let id = all.iter().find(|c| c["name"] == name).and_then(|c| c["containerID"].as_str()).expect("an id");
    plain_id(id)
}

pub(crate) fn idle(name: &str, resources: &str) -> String {
    shell(name, "while sleep 1; do :; done", &format!("    resources: {resources}\n"))
}

#[test]
fn tiers_pods_and_containers_have_a_kubelets_values_and_leave_no_group() {
    let node = Node::without_services();
    node.configure(&json!({"podPidsLimit": 200}));
    node.up();
    let both = "{cpu: 200m, memory: 64Mi}";
    node.put("full", &format!("  containers:\n{}", idle("main", &format!("{{requests: {both}, limits: {both}}}"))));
    let a = idle("a", "{requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 300m, memory: 64Mi}}");
    node.put("part", &format!("  containers:\n{a}{}", idle("b", "{requests: {cpu: 50m, memory: 16Mi}}")));
    node.put("none", &format!("  containers:\n{}", idle("main", "{}")));
    let critical = "  priorityClassName: system-node-critical\n  priority: 2000001000\n";
    node.put("dear", &format!("{critical}  containers:\n{}", idle("main", "{}")));
    let [full, part, none, dear] = ["full", "part", "none", "dear"].map(|name| node.wait_running(name));
    let memory: i64 = number(&node, "awk '/^MemTotal:/ { print $2 * 1024 }' /proc/meminfo");
    let most: u64 = number(&node, "sort -n /proc/sys/kernel/pid_max /proc/sys/kernel/threads-max | head -n 1");
    let most = most.to_string();
    let all = memory.to_string();
    let of = |tier: &str, pod: &Value| format!("{tier}pod{}", uid(pod));
    let in_pod = |tier: &str, pod: &Value, name: &str| format!("{}/{}", of(tier, pod), container(pod, name));
    let rows: [Row<'_>; 10] = [
        (".".to_owned(), ["39", "max 100000", &all, &most, "max", "0"]),
        ("burstable".to_owned(), ["6", "max 100000", "max", "max", "max", "0"]),
        ("besteffort".to_owned(), ["1", "max 100000", "max", "max", "max", "0"]),
        (of("", &full), ["8", "20000 100000", "67108864", "200", "max", "0"]),
        (of("burstable/", &part), ["6", "max 100000", "max", "200", "max", "0"]),
        (of("besteffort/", &none), ["1", "max 100000", "max", "200", "max", "0"]),
        (in_pod("", &full, "main"), ["8", "20000 100000", "67108864", "max", "0", "1"]),
        (in_pod("burstable/", &part, "a"), ["4", "30000 100000", "67108864", "max", "0", "1"]),
        (in_pod("burstable/", &part, "b"), ["2", "max 100000", "max", "max", "0", "1"]),
        (in_pod("besteffort/", &none, "main"), ["1", "max 100000", "max", "max", "0", "1"]),
    ];
    node.wait("the tier to have what its pods ask for", || {
        let weight = values(&node).get(&("burstable".to_owned(), "cpu.weight".to_owned())).cloned();
        if weight.as_deref() == Some("6") { Ok(()) } else { Err(format!("{weight:?}")) }
    });
    expect(&values(&node), &rows);
    let scores = || {
        let container = |tier: &str, pod: &Value, name: &str| score(&node, &in_pod(tier, pod, name));
        [
            number(&node, "cat /proc/$(cat /run/bosun.pid)/oom_score_adj"),
            container("", &full, "main"),
            container("burstable/", &part, "a"),
            container("burstable/", &part, "b"),
            container("besteffort/", &none, "main"),
            container("besteffort/", &dear, "main"),
        ]
    };
    // Whose request is the larger part of the machine's memory is killed later.
    let of_request = |mib: i64| 1000 - (1000 * (mib << 20)) / memory;
    let expected = [-999, -997, of_request(32), of_request(16), 1000, -997];
    assert_eq!(scores(), expected, "oom_score_adj of the daemon and of containers");
    node.restart_bosun();
    node.wait("the new daemon to have its score", || {
        let now = scores();
        if now == expected { Ok(()) } else { Err(format!("{now:?}")) }
    });
    for (name, before) in [("full", &full), ("part", &part), ("none", &none), ("dear", &dear)] {
        assert_eq!(testbed::identity(&node.wait_running(name)), testbed::identity(before), "{name} runs on");
    }
    expect(&values(&node), &rows);
    for name in ["full", "part", "none", "dear"] {
        node.remove(name);
    }
    node.wait("all groups but the tiers to go", || {
        let values = values(&node);
        let groups: BTreeSet<&str> = values.keys().map(|(group, _)| group.as_str()).collect();
        if groups == BTreeSet::from([".", "burstable", "besteffort"]) { Ok(()) } else { Err(format!("{groups:?}")) }
    });
    node.wait("the tier to ask for nothing", || {
        let weight = values(&node).get(&("burstable".to_owned(), "cpu.weight".to_owned())).cloned();
        if weight.as_deref() == Some("1") { Ok(()) } else { Err(format!("{weight:?}")) }
    });
}

/// What the kernel counts for a group.
#[derive(Debug)]
struct Counted {
    cpu_ns: u64,
    current: u64,
    anon: u64,
    inactive_file: u64,
    faults: u64,
    pids: u64,
}

fn counted(node: &Node, group: &str) -> Counted {
    let text = node.sh(&format!(
        "cd /sys/fs/cgroup/kubepods/{group}; for f in memory.current pids.current; do echo $f $(cat $f); done; cat cpu.stat memory.stat"
    ));
    let of = |key: &str| {
        let value = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' '));
        value.and_then(|v| v.parse::<u64>().ok()).unwrap_or_else(|| panic!("{key}: {text}"))
    };
    Counted {
        cpu_ns: of("usage_usec") * 1000,
        current: of("memory.current"),
        anon: of("anon"),
        inactive_file: of("inactive_file"),
        faults: of("pgfault"),
        pids: of("pids.current"),
    }
}

/// That what was told lies between two readings of the kernel.
fn between(told: &Value, kernel: [u64; 2], slack: u64, what: &str) {
    let told = told.as_u64().unwrap_or_else(|| panic!("{what}: {told}"));
    let (low, high) = (kernel[0].min(kernel[1]).saturating_sub(slack), kernel[0].max(kernel[1]) + slack);
    assert!((low..=high).contains(&told), "{what}: {told} is told, the kernel says {kernel:?}");
}

/// Holds what is told of a container or a pod against the kernel's own counters just before and after.
fn hold(told: &Value, [before, after]: [&Counted; 2], what: &str) {
    // A page here and there comes and goes while it is looked at.
    let slack = 1 << 20;
    let working = |c: &Counted| c.current.saturating_sub(c.inactive_file);
    let (cpu, memory) = (&told["cpu"], &told["memory"]);
    between(&cpu["usageCoreNanoSeconds"], [before.cpu_ns, after.cpu_ns], 0, &format!("{what}: cpu"));
    assert!(cpu["usageCoreNanoSeconds"].as_u64() > Some(0), "{what}: {cpu}");
    between(&memory["usageBytes"], [before.current, after.current], slack, &format!("{what}: usage"));
    between(&memory["workingSetBytes"], [working(before), working(after)], slack, &format!("{what}: working set"));
    between(&memory["rssBytes"], [before.anon, after.anon], slack, &format!("{what}: rss"));
    between(&memory["pageFaults"], [before.faults, after.faults], 0, &format!("{what}: faults"));
}

#[test]
fn what_is_told_of_a_pod_is_what_the_kernel_counts() {
    let node = Node::start();
    let writes = "dd if=/dev/zero of=/work/file bs=1k count=3000 2> /dev/null; while sleep 1; do :; done";
    let extra = "    resources: {limits: {memory: 64Mi}}\n    volumeMounts: [{name: work, mountPath: /work}]\n";
    let volumes = "  volumes: [{name: work, emptyDir: {}}]\n";
    node.put("counted", &format!("  containers:\n{}{volumes}", shell("main", writes, extra)));
    let pod = node.wait_running("counted");
    let group = format!("burstable/pod{}", uid(&pod));
    let inner = format!("{group}/{}", container(&pod, "main"));
    node.wait("its file", || {
        let size = node.sh(&format!("cat {}/{}/volumes/*/work/file | wc -c", crate::node::PODS, uid(&pod)));
        if size.trim() == "3072000" { Ok(()) } else { Err(size) }
    });
    // Volumes are measured once a minute.
    let (before, summary, after, told) = node.wait("its volume to be measured", || {
        let before = [&group, &inner].map(|g| counted(&node, g));
        let text = node.sh("curl -sSfk --max-time 60 https://10.77.0.1:10250/stats/summary");
        let after = [&group, &inner].map(|g| counted(&node, g));
        let summary: Value = serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))?;
        let told = summary["pods"].as_array().and_then(|pods| pods.iter().find(|p| p["podRef"]["uid"] == uid(&pod)));
        let told = told.filter(|p| p["volume"].is_array()).cloned().ok_or(text)?;
        Ok((before, summary, after, told))
    });
    hold(&told, [&before[0], &after[0]], "pod");
    hold(&told["containers"][0], [&before[1], &after[1]], "container");
    between(&told["process_stats"]["process_count"], [before[0].pids, after[0].pids], 1, "processes");
    let memory = &told["containers"][0]["memory"];
    let limit = 64 << 20;
    let sum = memory["availableBytes"].as_u64().zip(memory["workingSetBytes"].as_u64()).map(|(a, w)| a + w);
    assert_eq!(sum, Some(limit), "{memory}");
    let volume = &told["volume"][0];
    assert_eq!(volume["name"], "work", "{told}");
    assert!(volume["usedBytes"].as_u64() >= Some(3_072_000), "{volume}");
    let total: u64 = number(&node, "awk '/^MemTotal:/ { print $2 * 1024 }' /proc/meminfo");
    let node_memory = &summary["node"]["memory"];
    let known = node_memory["availableBytes"].as_u64().zip(node_memory["workingSetBytes"].as_u64());
    assert_eq!(known.map(|(a, w)| a + w), Some(total), "{node_memory}");
}

/// The shell itself takes little: it goes on if only the greedy one dies.
pub(crate) fn eats() -> String {
    let script = "echo begun; dd if=/dev/zero of=/dev/null bs=100M count=1; echo survived; exec sleep 100000";
    let limits = "    resources: {limits: {memory: 32Mi}}\n";
    format!("  restartPolicy: Never\n  containers:\n{}", shell("main", script, limits))
}

/// Waits for the end of a pod, which is told as the kernel's.
pub(crate) fn wait_oom_killed(node: &Node, name: &str) -> Value {
    let pod = node.wait("the pod to fail", || {
        let pod = node.pod(name)?.ok_or("no such pod")?;
        if pod["status"]["phase"] == "Failed" { Ok(pod) } else { Err(pod["status"].to_string()) }
    });
    let end = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&end["reason"], &end["exitCode"]), (&"OOMKilled".into(), &137.into()), "{pod}");
    pod
}

fn log_of(node: &Node, pod: &Value) -> String {
    node.sh(&format!("cat /var/log/pods/*_{}/main/0.log", uid(pod)))
}

#[test]
fn a_container_that_takes_too_much_dies_as_a_whole_and_it_is_told_why() {
    let node = Node::start();
    node.put("eats", &eats());
    let pod = wait_oom_killed(&node, "eats");
    let log = log_of(&node, &pod);
    assert!(log.contains("begun") && !log.contains("survived"), "{log}");
    node.remove("eats");
    node.wait_gone("eats");
    node.wait("its group to go", || {
        let left = node.sh(&format!("ls -d /sys/fs/cgroup/kubepods/burstable/pod{} 2> /dev/null || true", uid(&pod)));
        if left.is_empty() { Ok(()) } else { Err(left) }
    });
}

/// Takes all memory of the machine by processes of nobody, whom the kernel kills before anybody else; prints the id of the first one that
/// it killed, as it says. One alone cannot: each page is a mapping of this machine, which has a limit of them.
const RUNS_OUT: &str = r"exec 2> /dev/null
(echo 1000 > /proc/self/oom_score_adj
 for n in 1 2 3 4 5 6 7 8; do dd if=/dev/zero bs=150M count=1 status=none | sleep 300 & done; wait) &
until dmesg | grep -q 'Out of memory: Killed process'; do sleep 1; done
pkill -9 -x dd
dmesg | sed -n 's/.*Out of memory: Killed process \([0-9]*\) (dd).*/\1/p' | head -n 1";

#[test]
fn only_the_greedy_process_dies_where_that_is_wished_and_a_machine_without_memory_is_told_of() {
    let node = Node::without_services();
    // Nobody is evicted: the kernel has to act.
    node.configure(&json!({"singleProcessOOMKill": true, "evictionHard": {"memory.available": "0%"}}));
    node.up();
    node.put("eats", &eats());
    let pod = node.wait_running("eats");
    node.wait("the shell to go on", || {
        let log = log_of(&node, &pod);
        if log.contains("survived") { Ok(()) } else { Err(log) }
    });
    let group = format!("/sys/fs/cgroup/kubepods/burstable/pod{}/{}", uid(&pod), container(&pod, "main"));
    assert_eq!(node.sh(&format!("cat {group}/memory.oom.group")).trim(), "0");
    let kills: u64 = number(&node, &format!("awk '/^oom_kill / {{ print $2 }}' {group}/memory.events"));
    assert_eq!(kills, 1, "the kernel killed the greedy one");
    assert_eq!(testbed::identity(&node.wait_running("eats")), testbed::identity(&pod), "the container goes on");
    let told = || node.ask("events").expect("events").to_string();
    assert!(!told().contains("SystemOOM"), "that a container met its limit is no matter of the machine: {}", told());

    let victim: u64 = number(&node, RUNS_OUT);
    let message = format!("System OOM encountered, victim process: dd, pid: {victim}");
    node.wait("the event of the machine", || {
        let told = told();
        if told.contains("SystemOOM") && told.contains(&message) { Ok(()) } else { Err(told) }
    });
    assert_eq!(testbed::identity(&node.wait_running("eats")), testbed::identity(&pod), "the pod goes on");
}
