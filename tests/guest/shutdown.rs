//! The machine goes down: a real systemd-logind holds it back for the pods. Of systemd itself there is only what logind asks at
//! its end (`systemd1`), as the guest's first process is another one.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::node::Node;
use crate::served::{FOLDER, create, get, serve, wait_running};

/// What the API server held when the machine was to go.
const AT_THE_END: &str = "/run/at-the-end";

fn busctl(node: &Node, words: &str) -> String {
    let of = "org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager";
    let (call, rest) = words.split_once(' ').unwrap_or((words, ""));
    node.sh(&format!("busctl {call} {of} {rest}"))
}

/// A node with a system bus, logind, and a daemon with these fields of its configuration that holds shutdowns back.
fn node(config: &Value) -> Node {
    let node = Node::without_services();
    let systemd1 = node.bring(env!("CARGO_BIN_EXE_systemd1"));
    let script = format!(
        "curl -sSf $(cat {FOLDER}/url)/api/v1/namespaces/default/pods > {AT_THE_END}.new && mv {AT_THE_END}.new {AT_THE_END}"
    );
    node.guest.put("/etc/systemd/logind.conf.d/50-delay.conf", "[Login]\nInhibitDelayMaxSec=900\n").expect("written");
    node.sh(&format!(
        "set -e; mkdir -p /run/dbus /run/systemd; dbus-daemon --system --fork --nopidfile
         setsid {systemd1} '{script}' > /run/systemd1.out 2>&1 < /dev/null &"
    ));
    node.wait("systemd's place to be taken", || {
        let text = node.sh("cat /run/systemd1.out");
        if text == "ready\n" { Ok(()) } else { Err(text) }
    });
    node.sh("setsid /lib/systemd/systemd-logind > /var/log/logind.log 2>&1 < /dev/null &");
    serve(&node, config);
    node.wait("a lock on shutdowns", || {
        let list = busctl(&node, "call ListInhibitors");
        if list.contains("\"shutdown\" \"kubelet\"") && list.contains("\"delay\"") { Ok(()) } else { Err(list) }
    });
    node
}

/// A pod that notes when it is told to end and then lasts so many seconds, or for ever.
fn lasting(node: &Node, name: &str, priority: i32, grace: u32, lasts: u32) {
    let script = format!(
        "trap 'cut -d\" \" -f1 /proc/uptime > /told/{name}; sleep {lasts}; exit 3' TERM; while :; do sleep 0.2; done"
    );
    let mounts = json!([{"name": "told", "mountPath": "/told"}]);
    let container = json!({"command": ["sh", "-c", script], "volumeMounts": mounts});
    let volumes = json!([{"name": "told", "hostPath": {"path": "/run", "type": "Directory"}}]);
    create(
        node,
        name,
        container,
        json!({"priority": priority, "terminationGracePeriodSeconds": grace, "volumes": volumes}),
    );
}

/// One pod at the end of the machine.
#[derive(Debug)]
struct End {
    /// Uptime at which it was told.
    told: f64,
    /// Seconds from then to its end; the kernel's clock and that of the runtime differ by up to one.
    lasted: f64,
    exit: i64,
}

/// Logind is asked to shut down; what each pod was told and has come to by the time that the machine may go, as the API server
/// has it.
fn go_down(node: &Node, names: &[&str]) -> BTreeMap<String, End> {
    names.iter().for_each(|name| drop(wait_running(node, name)));
    let boot: f64 = node.sh("awk '/^btime/ { print $2 }' /proc/stat").trim().parse().expect("a time");
    busctl(node, "call PowerOff b false");
    node.wait("the node to say so", || {
        let told = get(node, "nodes/guest")?["status"]["conditions"].clone();
        let is_it =
            |c: &Value| c["type"] == "Ready" && c["status"] == "False" && c["message"] == "node is shutting down";
        if told.as_array().is_some_and(|all| all.iter().any(is_it)) { Ok(()) } else { Err(told.to_string()) }
    });
    let text = node.wait("the machine to go", || {
        let text = node.sh(&format!("cat {AT_THE_END} 2> /dev/null || true"));
        if text.is_empty() { Err(busctl(node, "call ListInhibitors")) } else { Ok(text) }
    });
    let pods: Value = serde_json::from_str(&text).expect("JSON");
    let of = |name: &&str| {
        let all = pods["items"].as_array().expect("a list");
        let status = all.iter().find(|pod| pod["metadata"]["name"] == *name).expect("a pod")["status"].clone();
        assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("Terminated")), "{name}: {status}");
        assert_eq!(status["message"], "Pod was terminated in response to imminent node shutdown.", "{name}");
        let end = &status["containerStatuses"][0]["state"]["terminated"];
        let finished = node.sh(&format!("date -d {} +%s.%N", end["finishedAt"].as_str().expect("a time")));
        let told: f64 = node.sh(&format!("cat /run/{name}")).trim().parse().expect("a time");
        let lasted = finished.trim().parse::<f64>().expect("a time") - boot - told;
        ((*name).to_owned(), End { told, lasted, exit: end["exitCode"].as_i64().expect("a code") })
    };
    let ends = names.iter().map(of).collect();
    println!("{ends:#?}");
    ends
}

/// Each one of a group is told only after all of the group before have ended.
fn in_order(ends: &BTreeMap<String, End>, groups: &[&[&str]]) {
    for pair in groups.windows(2) {
        for (first, then) in pair[0].iter().flat_map(|first| pair[1].iter().map(move |then| (first, then))) {
            let (first, then) = (&ends[*first], &ends[*then]);
            assert!(first.told + first.lasted <= then.told + 2.0, "{pair:?}: {ends:#?}");
        }
    }
}

#[test]
fn pods_end_by_priority_each_with_its_grace_and_all_is_told_before_the_machine_goes() {
    let period = |priority: i32, seconds: u32| json!({"priority": priority, "shutdownGracePeriodSeconds": seconds});
    // In no order: they are sorted by priority.
    let config = json!({"shutdownGracePeriodByPodPriority": [period(1000, 8), period(0, 60), period(100_000, 60)]});
    let node = node(&config);
    lasting(&node, "low-quick", 0, 30, 1);
    lasting(&node, "low-deaf", 10, 6, 3600);
    lasting(&node, "middle-deaf", 1000, 300, 3600);
    lasting(&node, "high-slow", 200_000, 40, 5);
    let ends = go_down(&node, &["low-quick", "low-deaf", "middle-deaf", "high-slow"]);
    in_order(&ends, &[&["low-quick", "low-deaf"], &["middle-deaf"], &["high-slow"]]);
    let exits = ["low-quick", "low-deaf", "middle-deaf", "high-slow"].map(|name| ends[name].exit);
    assert_eq!(exits, [3, 137, 137, 3], "who ends in time is not killed");
    assert!(ends["low-deaf"].lasted >= 5.0, "its own grace: {ends:#?}");
    assert!((7.0..60.0).contains(&ends["middle-deaf"].lasted), "no more than its group has: {ends:#?}");
    assert!(ends["high-slow"].lasted >= 4.0, "{ends:#?}");
}

#[test]
fn critical_pods_end_last_where_there_are_two_periods() {
    let node = node(&json!({"shutdownGracePeriod": "50s", "shutdownGracePeriodCriticalPods": "20s"}));
    lasting(&node, "plain", 0, 30, 3);
    lasting(&node, "dear", 1_000_000, 30, 1);
    lasting(&node, "critical", 2_000_000_000, 30, 2);
    let ends = go_down(&node, &["plain", "dear", "critical"]);
    in_order(&ends, &[&["plain", "dear"], &["critical"]]);
    assert!(ends.values().all(|end| end.exit == 3), "{ends:#?}");
}
