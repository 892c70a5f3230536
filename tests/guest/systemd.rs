//! A node whose first process is a real systemd, which makes the cgroups (`cgroupDriver: systemd`), with bosun as the unit that nodes
//! have (`config/bosun.service`), on its own runtime.

use serde_json::Value;

use crate::cgroups::{Row, Values, container, eats, expect, idle, number, values_below, wait_oom_killed};
use crate::node::{Node, uid};

/// The slice of all pods.
pub(crate) const ALL: &str = "kubepods.slice";
/// A pod whose containers see each other has a process of its own, which is the first of their PID namespace.
pub(crate) const SHARED: &str = "  shareProcessNamespace: true\n  restartPolicy: Never\n";
/// Prints what is there of pods: units, files of units, groups, processes, records, and units that have failed.
const LEFT: &str = "systemctl list-units --all --plain --no-legend 'cri-containerd-*' 'kubepods*-pod*'
    systemctl list-units --failed --plain --no-legend
    find /run/systemd/transient /sys/fs/cgroup/kubepods.slice -name 'cri-containerd-*' -o -name 'kubepods*-pod*'
    pidof bosun-pod
    find /run/bosun/runtime /var/lib/bosun/runtime/pods /var/lib/kubelet/pods -mindepth 1 -maxdepth 1 ! -name oci
    true";

/// The slice of a pod below [`ALL`], in that of its tier if it has one.
fn slice(tier: &str, pod: &Value) -> String {
    let uid = uid(pod).replace('-', "_");
    match tier {
        "" => format!("kubepods-pod{uid}.slice"),
        tier => format!("kubepods-{tier}.slice/kubepods-{tier}-pod{uid}.slice"),
    }
}

/// The scope of a container.
fn scope(tier: &str, pod: &Value, name: &str) -> String {
    format!("{}/cri-containerd-{}.scope", slice(tier, pod), container(pod, name))
}

/// What systemd has to set again when it reads its units anew. It sets `memory.oom.group`, which `runc` has no property of a unit for,
/// to 0 then: with containerd, too.
fn kept(values: Values) -> Values {
    values.into_iter().filter(|((_, file), _)| file != "memory.oom.group").collect()
}

/// Numbers of supervisors, and of the first process of the pod that has one; commands of probes go by the same name, and come and go.
fn supervisors(node: &Node) -> String {
    node.sh("pgrep -f '^[^ ]*bosun-pod (run|init) '")
}

pub(crate) fn wait_nothing_left(node: &Node) {
    node.wait("nothing to be left of pods", || {
        let left = node.sh(LEFT);
        if left.is_empty() { Ok(()) } else { Err(left) }
    });
}

fn wait_ready(node: &Node, name: &str) {
    node.wait(&format!("{name} to be ready"), || {
        let pod = node.pod(name)?.ok_or("no such pod")?;
        let is_ready = pod["status"]["containerStatuses"][0]["ready"] == true;
        if is_ready { Ok(()) } else { Err(pod["status"].to_string()) }
    });
}

/// `/stats/summary` has a container with memory and processor for each of the pods.
fn wait_counted(node: &Node, pods: &[&Value]) {
    node.wait("all pods to be counted", || {
        let text = node.sh("curl -sSfk --max-time 60 https://10.77.0.1:10250/stats/summary");
        let summary: Value = serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))?;
        let told = summary["pods"].as_array().ok_or("no pods")?;
        let is_counted = |pod: &&Value| {
            let told = told.iter().find(|p| p["podRef"]["uid"] == uid(pod)).map(|p| &p["containers"][0]);
            let used = |c: &Value| c["memory"]["usageBytes"].as_u64().zip(c["cpu"]["usageCoreNanoSeconds"].as_u64());
            told.and_then(used).is_some_and(|(memory, cpu)| memory > 0 && cpu > 0)
        };
        if pods.iter().all(is_counted) { Ok(()) } else { Err(text) }
    });
}

#[test]
fn slices_and_scopes_have_a_kubelets_values_outlive_daemons_and_reloads_and_leave_nothing() {
    let node = Node::of_systemd();
    let both = "{cpu: 200m, memory: 64Mi}";
    let probe = "    readinessProbe: {exec: {command: [grep, -qx, '0::/', /proc/self/cgroup]}, periodSeconds: 3, \
                 timeoutSeconds: 10}\n";
    let full = idle("main", &format!("{{requests: {both}, limits: {both}}}"));
    node.put("full", &format!("  containers:\n{full}{probe}"));
    let a = idle("a", "{requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 300m, memory: 64Mi}}");
    node.put("part", &format!("  containers:\n{a}{}", idle("b", "{requests: {cpu: 50m, memory: 16Mi}}")));
    node.put("none", &format!("{SHARED}  containers:\n{}", idle("main", "{}")));
    let names = ["full", "part", "none"];
    let [full, part, none] = names.map(|name| node.wait_running(name));
    wait_ready(&node, "full");

    let memory: String = number::<u64>(&node, "awk '/^MemTotal:/ { print $2 * 1024 }' /proc/meminfo").to_string();
    let most: u64 = number(&node, "sort -n /proc/sys/kernel/pid_max /proc/sys/kernel/threads-max | head -n 1");
    // A scope for which `runc` is told nothing has so many; the pod's limit is what counts.
    let tasks: u64 = number(&node, "systemctl show --property DefaultTasksMax --value");
    let (most, tasks) = (most.to_string(), tasks.to_string());
    let rows: [Row<'_>; 10] = [
        (".".to_owned(), ["39", "max 100000", &memory, &most, "max", "0"]),
        ("kubepods-burstable.slice".to_owned(), ["6", "max 100000", "max", "max", "max", "0"]),
        ("kubepods-besteffort.slice".to_owned(), ["1", "max 100000", "max", "max", "max", "0"]),
        (slice("", &full), ["8", "20000 100000", "67108864", "200", "max", "0"]),
        (slice("burstable", &part), ["6", "max 100000", "max", "200", "max", "0"]),
        (slice("besteffort", &none), ["1", "max 100000", "max", "200", "max", "0"]),
        (scope("", &full, "main"), ["8", "20000 100000", "67108864", &tasks, "0", "1"]),
        (scope("burstable", &part, "a"), ["4", "30000 100000", "67108864", &tasks, "0", "1"]),
        (scope("burstable", &part, "b"), ["2", "max 100000", "max", &tasks, "0", "1"]),
        (scope("besteffort", &none, "main"), ["1", "max 100000", "max", &tasks, "0", "1"]),
    ];
    let before = values_below(&node, ALL);
    expect(&before, &rows);
    node.sh("systemctl daemon-reload");
    assert_eq!(kept(values_below(&node, ALL)), kept(before.clone()), "systemd has the limits, too");

    let held = supervisors(&node);
    node.sh("systemctl restart bosun");
    node.wait_answer();
    // systemd starts another one.
    node.sh("pid=$(systemctl show --property MainPID --value bosun); kill -9 $pid; while [ -e /proc/$pid/exe ]; do sleep 0.1; done");
    node.wait_answer();
    for (name, before) in names.iter().zip([&full, &part, &none]) {
        assert_eq!(testbed::identity(&node.wait_running(name)), testbed::identity(before), "{name} runs on");
    }
    assert_eq!(supervisors(&node), held, "supervisors outlive the service");
    assert_eq!(kept(values_below(&node, ALL)), kept(before), "nothing is limited otherwise");
    wait_ready(&node, "full");
    assert_eq!(node.sh("bosun exec full-guest -- cat /proc/self/cgroup"), "0::/\n");
    wait_counted(&node, &[&full, &part, &none]);

    names.iter().for_each(|name| node.remove(name));
    names.iter().for_each(|name| node.wait_gone(name));
    wait_nothing_left(&node);
}

/// systemd removes a scope with its last process, and with it what the kernel counted there.
#[test]
fn what_the_kernel_killed_in_a_scope_that_is_gone_is_told() {
    let node = Node::of_systemd();
    node.put("eats", &eats());
    let pod = wait_oom_killed(&node, "eats");
    node.sh(&format!("! ls /sys/fs/cgroup/{ALL}/{} 2> /dev/null", scope("burstable", &pod, "main")));
    node.remove("eats");
    node.wait_gone("eats");
    wait_nothing_left(&node);
}
