//! Memory that is kept for pods and for others, from where on pods are slowed down, and who sits in which cgroup: what the kernel has of
//! it on cgroup v2, held against the rules of a kubelet (node-and-resources 1.1, 1.8, 1.9).

use serde_json::{Value, json};
use testbed::plain_id;

use crate::node::{Node, shell, uid};
use crate::served::{self, FOLDER, create, serve};

const MIB: u64 = 1 << 20;
/// What is set aside, in MiB.
const SYSTEM: u64 = 64;
const KUBE: u64 = 48;

/// Bytes or `max`, of a file below the root of the tree.
fn value(node: &Node, path: &str) -> String {
    node.sh(&format!("cat /sys/fs/cgroup/{path}")).trim().to_owned()
}

fn number(node: &Node, script: &str) -> u64 {
    let text = node.sh(script);
    text.trim().parse().unwrap_or_else(|_| panic!("{script}: {text}"))
}

/// What pods may take together: the machine's memory less what is set aside for others.
fn for_pods(node: &Node) -> u64 {
    number(node, "awk '/^MemTotal:/ { print $2 * 1024 }' /proc/meminfo") - (SYSTEM + KUBE) * MIB
}

fn pod_group(tier: &str, pod: &Value) -> String {
    format!("kubepods{tier}/pod{}", uid(pod))
}

fn container_group(tier: &str, pod: &Value, name: &str) -> String {
    let all = pod["status"]["containerStatuses"].as_array().expect("containers");
    let id = all.iter().find(|c| c["name"] == name).and_then(|c| c["containerID"].as_str()).expect("an id");
    format!("{}/{}", pod_group(tier, pod), plain_id(id))
}

fn idle(name: &str, resources: &str) -> String {
    shell(name, "while sleep 1; do :; done", &format!("    resources: {resources}\n"))
}

/// `memory.min`, `memory.low` and `memory.high` of each group.
fn expect(node: &Node, rows: &[(String, [&str; 3])]) {
    for (group, wanted) in rows {
        let is = ["memory.min", "memory.low", "memory.high"].map(|file| value(node, &format!("{group}/{file}")));
        assert_eq!(&is, wanted, "memory.min, memory.low and memory.high of {group}");
    }
}

fn wait_value(node: &Node, path: &str, wanted: &str) {
    node.wait(&format!("{path} to be {wanted}"), || match value(node, path) {
        is if is == wanted => Ok(()),
        is => Err(is),
    });
}

/// What the daemon's metrics say that is kept for guaranteed pods and for burstable ones.
fn told_kept(node: &Node) -> [u64; 2] {
    let text = node.sh("curl -sSfk --max-time 60 https://10.77.0.1:10250/metrics | grep ^kubelet_memory_qos_node");
    ["min", "low"].map(|kind| {
        let line = text.lines().find_map(|l| l.strip_prefix(&format!("kubelet_memory_qos_node_memory_{kind}_bytes ")));
        let bytes: f64 = line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{kind}: {text}"));
        // As whole as it is exact: far below 2^53.
        format!("{bytes:.0}").parse().expect("bytes")
    })
}

#[test]
fn with_memory_qos_the_kernel_keeps_memory_for_pods_tiers_and_those_that_it_is_set_aside_for() {
    let node = Node::without_services();
    node.sh("mkdir /sys/fs/cgroup/for-system /sys/fs/cgroup/for-kube");
    let rules = json!({
        "featureGates": {"MemoryQoS": true}, "memoryReservationPolicy": "TieredReservation", "memoryThrottlingFactor": 0.5,
        "systemReserved": {"memory": format!("{SYSTEM}Mi")}, "systemReservedCgroup": "/for-system",
        "kubeReserved": {"memory": format!("{KUBE}Mi")}, "kubeReservedCgroup": "/for-kube",
        "enforceNodeAllocatable": ["pods", "system-reserved", "kube-reserved"],
    });
    node.configure(&rules);
    node.up();
    let both = "{cpu: 100m, memory: 64Mi}";
    node.put("full", &format!("  containers:\n{}", idle("main", &format!("{{requests: {both}, limits: {both}}}"))));
    // It takes a little more than it can without being slowed down, and less than what kills it.
    let takes = "dd if=/dev/zero of=/dev/shm/f bs=1M count=46; exec sleep 100000";
    let a = shell("a", takes, "    resources: {requests: {memory: 32Mi}, limits: {memory: 56Mi}}\n");
    node.put("part", &format!("  containers:\n{a}{}", idle("b", "{requests: {memory: 16Mi}}")));
    node.put("none", &format!("  containers:\n{}", idle("main", "{}")));
    let [full, part, none] = ["full", "part", "none"].map(|name| node.wait_running(name));

    let page = number(&node, "getconf PAGESIZE");
    let [m16, m32, m44, m48, m64, m112] = [16, 32, 44, 48, 64, 112].map(|mib| (mib * MIB).to_string());
    // Halfway between request and what there is at most, in whole pages.
    let high = ((16 * MIB + (for_pods(&node) - 16 * MIB) / 2) / page * page).to_string();
    wait_value(&node, "kubepods/memory.min", &m112);
    let tiers = [("kubepods".to_owned(), [&*m112, "0", "max"]), ("kubepods/burstable".to_owned(), ["0", &m48, "max"])];
    expect(&node, &tiers);
    let pods = [
        ("kubepods/besteffort".to_owned(), ["0", "0", "max"]),
        (pod_group("", &full), [&*m64, "0", "max"]),
        (pod_group("/burstable", &part), ["0", &m48, "max"]),
        (pod_group("/besteffort", &none), ["0", "0", "max"]),
        (container_group("", &full, "main"), [&m64, "0", "max"]),
        (container_group("/burstable", &part, "a"), ["0", &m32, &m44]),
        (container_group("/burstable", &part, "b"), ["0", &m16, &high]),
        (container_group("/besteffort", &none, "main"), ["0", "0", "max"]),
    ];
    expect(&node, &pods);
    for (group, bytes) in [("for-system", &m64), ("for-kube", &m48)] {
        expect(&node, &[(group.to_owned(), [bytes, "0", "max"])]);
        assert_eq!(&value(&node, &format!("{group}/memory.max")), bytes, "{group}");
    }
    assert_eq!(value(&node, "kubepods/memory.max"), for_pods(&node).to_string());
    assert_eq!(told_kept(&node), [64 * MIB, 48 * MIB]);
    let greedy = container_group("/burstable", &part, "a");
    node.wait("it to be slowed down", || {
        let events = value(&node, &format!("{greedy}/memory.events"));
        let count = |name: &str| events.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<u64>().ok());
        if count("high ") > Some(0) && count("oom_kill ") == Some(0) { Ok(()) } else { Err(events) }
    });

    // Without the policy nothing is kept for tiers any more; what containers were given stays with them, and nobody dies over it.
    node.configure(&json!({"memoryReservationPolicy": "None"}));
    node.restart_bosun();
    wait_value(&node, "kubepods/memory.min", "0");
    wait_value(&node, "kubepods/burstable/memory.low", "0");
    for (name, before) in [("full", &full), ("part", &part), ("none", &none)] {
        assert_eq!(testbed::identity(&node.wait_running(name)), testbed::identity(before), "{name} runs on");
    }
    expect(&node, &pods);
    assert_eq!(told_kept(&node), [0, 0]);
    expect(&node, &[("for-system".to_owned(), [&m64, "0", "max"])]);
}

/// Asks the API server for other resources of its one container.
fn resize(node: &Node, name: &str, resources: &Value) {
    let spec = json!({"spec": {"containers": [{"name": "main", "resources": resources}]}});
    node.sh(&format!(
        "curl -sSf -o /dev/null -X PATCH -H 'Content-Type: application/strategic-merge-patch+json' \
         --data '{spec}' $(cat {FOLDER}/url)/api/v1/namespaces/default/pods/{name}/resize"
    ));
}

/// Waits until its status tells of these resources and of no resize any more; answers the pod.
fn wait_resized(node: &Node, name: &str, resources: &Value) -> Value {
    node.wait(&format!("{name} to be resized"), || {
        let pod = served::pod(node, name)?;
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let resizes = conditions.iter().any(|c| c["type"].as_str().is_some_and(|kind| kind.starts_with("PodResize")));
        let has = &pod["status"]["containerStatuses"][0]["resources"] == resources;
        if has && !resizes { Ok(pod) } else { Err(pod["status"].to_string()) }
    })
}

/// As a kubelet 1.36 has it: containers and tiers follow, what is kept for the pod as a whole stays as it was made.
#[test]
fn what_is_kept_for_a_container_and_where_it_is_slowed_down_follow_a_resize() {
    let node = Node::without_services();
    let rules = json!({
        "featureGates": {"MemoryQoS": true}, "memoryReservationPolicy": "TieredReservation", "memoryThrottlingFactor": 0.5,
    });
    serve(&node, &rules);
    let amounts = |request: u64, limit: u64| {
        let of = |mib: u64| json!({"cpu": "50m", "memory": format!("{mib}Mi")});
        json!({"requests": of(request), "limits": of(limit)})
    };
    let begin = [("full", [64, 64]), ("part", [32, 64])];
    let lasts = "trap 'exit 0' TERM; sleep 100000 & wait";
    for (name, [request, limit]) in begin {
        let container = json!({"command": ["sh", "-c", lasts], "resources": amounts(request, limit)});
        create(&node, name, container, json!({}));
    }
    let before = begin.map(|(name, _)| served::wait_running(&node, name));
    let [full, part] = &before;
    let groups = [
        container_group("", full, "main"),
        container_group("/burstable", part, "main"),
        pod_group("", full),
        pod_group("/burstable", part),
    ];
    // Of the guaranteed one its request, of the burstable one request and limit: at the start, grown, and shrunk below that.
    for (turn, [all, request, limit]) in [[64, 32, 64], [80, 40, 72], [48, 16, 48]].into_iter().enumerate() {
        let wanted = [("full", amounts(all, all)), ("part", amounts(request, limit))];
        if turn > 0 {
            wanted.iter().for_each(|(name, resources)| resize(&node, name, resources));
        }
        for ((name, resources), before) in wanted.iter().zip(&before) {
            let pod = wait_resized(&node, name, resources);
            assert_eq!(testbed::identity(&pod), testbed::identity(before), "{name} runs on");
        }
        // Halfway between request and limit.
        let [kept, low, high] = [all, request, request + (limit - request) / 2].map(|mib| (mib * MIB).to_string());
        let rows = [[&*kept, "0", "max"], ["0", &*low, &*high], [&*mib(64), "0", "max"], ["0", &*mib(32), "max"]];
        expect(&node, &groups.clone().into_iter().zip(rows).collect::<Vec<_>>());
        for (group, most) in groups.iter().zip([all, limit, all, limit]) {
            assert_eq!(value(&node, &format!("{group}/memory.max")), mib(most), "{group} in turn {turn}");
        }
        wait_value(&node, "kubepods/memory.min", &mib(all + request));
        wait_value(&node, "kubepods/burstable/memory.low", &low);
        if turn == 1 {
            served::restart(&node);
        }
    }
}

/// Bytes, as the kernel writes them.
fn mib(n: u64) -> String {
    (n * MIB).to_string()
}

/// Ids of processes of the root of the tree that can be moved: not the first process, nor threads of the kernel.
const STRAYS: &str = "for pid in $(cat /sys/fs/cgroup/cgroup.procs); do
  [ \"$pid\" -le 1 ] || ! readlink /proc/$pid/exe > /dev/null 2>&1 || echo $pid; done";

#[test]
fn strays_and_the_daemon_have_their_cgroup_and_lower_classes_what_higher_ones_leave() {
    let node = Node::without_services();
    // Enough is set aside that classes meet their limits long before the machine does.
    let total = number(&node, "awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo");
    let left = 176;
    node.configure(&json!({
        "featureGates": {"QOSReserved": true}, "qosReserved": {"memory": "50%"},
        "cgroupRoot": "/", "systemCgroups": "/strays", "kubeletCgroups": "/system.slice/own",
        "systemReserved": {"memory": format!("{}Mi", total - left)}, "evictionHard": {"memory.available": "0%"},
    }));
    node.sh("setsid sleep 100000 < /dev/null > /dev/null 2>&1 & echo $! > /run/stray.pid");
    let stray = node.sh("cat /run/stray.pid").trim().to_owned();
    let group_of = |pid: &str| node.sh(&format!("sed -n 's/^0:://p' /proc/{pid}/cgroup")).trim().to_owned();
    assert_eq!(group_of(&stray), "/");
    let first = group_of("1");
    node.up();
    node.wait("the stray to be moved", || match group_of(&stray) {
        group if group == "/strays" => Ok(()),
        group => Err(group),
    });
    assert_eq!(group_of("1"), first, "the first process stays");
    let daemon = node.sh("cat /run/bosun.pid").trim().to_owned();
    assert_eq!(group_of(&daemon), "/system.slice/own");
    let kernel = node.sh("readlink /proc/2/exe > /dev/null 2>&1 || sed -n 's/^0:://p' /proc/2/cgroup");
    assert_eq!(kernel.trim(), "/", "threads of the kernel stay");

    // One that comes later is moved within a minute, whoever runs scripts here meanwhile.
    node.sh("setsid sleep 100001 < /dev/null > /dev/null 2>&1 & echo $! > /run/later.pid");
    let later = node.sh("cat /run/later.pid").trim().to_owned();
    node.wait("the later one to be moved", || {
        let left = node.sh(STRAYS);
        if group_of(&later) == "/strays" { Ok(()) } else { Err(left) }
    });
    told_of_both(&node);

    let both = "{cpu: 50m, memory: 64Mi}";
    node.put("full", &format!("  containers:\n{}", idle("main", &format!("{{requests: {both}, limits: {both}}}"))));
    node.put("part", &format!("  containers:\n{}", idle("main", "{requests: {memory: 96Mi}}")));
    let [full, part] = ["full", "part"].map(|name| node.wait_running(name));
    let all = number(&node, "awk '/^MemTotal:/ { print $2 * 1024 }' /proc/meminfo") - (total - left) * MIB;
    // Half of what those above request is kept from a class.
    let (burstable, best_effort) = (all - 32 * MIB, all - 80 * MIB);
    wait_value(&node, "kubepods/burstable/memory.max", &burstable.to_string());
    wait_value(&node, "kubepods/besteffort/memory.max", &best_effort.to_string());
    assert_eq!(value(&node, "kubepods/memory.max"), all.to_string());

    let takes = format!(
        "dd if=/dev/zero of=/dev/shm/f bs=1M count=60; dd if=/dev/zero of=/dev/null bs=1M count=1; {}",
        "dd if=/dev/zero of=/dev/null bs=100M count=1; exec sleep 100000"
    );
    node.put("none", &format!("  restartPolicy: Never\n  containers:\n{}", shell("main", &takes, "")));
    let ended = node.wait("the tier to be full", || {
        let pod = node.pod("none")?.ok_or("no such pod")?;
        let end = pod["status"]["containerStatuses"][0]["state"]["terminated"].clone();
        if end.is_object() { Ok(end) } else { Err(pod["status"].to_string()) }
    });
    assert_eq!((&ended["reason"], &ended["exitCode"]), (&"OOMKilled".into(), &137.into()), "{ended}");
    let met = |group: &str| {
        number(&node, &format!("awk '/^oom / {{ print $2 }}' /sys/fs/cgroup/{group}/memory.events.local"))
    };
    assert!(met("kubepods/besteffort") > 0, "it is the limit of its class that it met");
    assert_eq!(met("kubepods"), 0);
    for (name, before) in [("full", &full), ("part", &part)] {
        assert_eq!(testbed::identity(&node.wait_running(name)), testbed::identity(before), "{name} runs on");
    }
    node.remove("full");
    wait_value(&node, "kubepods/burstable/memory.max", &all.to_string());
    wait_value(&node, "kubepods/besteffort/memory.max", &(all - 48 * MIB).to_string());
}

/// `/stats/summary` has a container of the system for strays and one for the daemon, with what the kernel counts for their groups: of memory
/// only what they took since they are there.
fn told_of_both(node: &Node) {
    for (name, group) in [("misc", "strays"), ("kubelet", "system.slice/own")] {
        let counted = || {
            let cpu =
                number(node, &format!("awk '/^usage_usec / {{ print $2 * 1000 }}' /sys/fs/cgroup/{group}/cpu.stat"));
            (cpu, number(node, &format!("cat /sys/fs/cgroup/{group}/memory.current")))
        };
        let before = counted();
        let summary = node.sh("curl -sSfk --max-time 60 https://10.77.0.1:10250/stats/summary");
        let after = counted();
        let summary: Value = serde_json::from_str(&summary).expect("JSON");
        let all = summary["node"]["systemContainers"].as_array().expect("containers of the system");
        let told = all.iter().find(|c| c["name"] == name).unwrap_or_else(|| panic!("no {name}: {all:?}"));
        let between = |told: &Value, before: u64, after: u64, slack: u64| {
            let told = told.as_u64().unwrap_or_else(|| panic!("{told}"));
            let range = before.min(after).saturating_sub(slack)..=before.max(after) + slack;
            assert!(range.contains(&told), "{name}: {told} is told, the kernel says {range:?}");
        };
        between(&told["cpu"]["usageCoreNanoSeconds"], before.0, after.0, 0);
        between(&told["memory"]["usageBytes"], before.1, after.1, MIB);
    }
}
