//! What breaks beside the pods must not touch them: the daemon killed, containerd killed, actors killed.

use std::time::Duration;

use testbed::{BosunOptions, wait_until};

use crate::node::{Node, SOON, identity, shell, state};

fn steady(node: &Node, names: &[&str]) -> Vec<Vec<(String, u64)>> {
    for name in names {
        node.put(
            name,
            &format!("  terminationGracePeriodSeconds: 1\n  containers:\n{}", shell("main", "exec sleep 1000", "")),
        );
    }
    names.iter().map(|n| identity(&node.wait_running(n))).collect()
}

fn same(node: &Node, names: &[&str]) -> Vec<Vec<(String, u64)>> {
    names.iter().map(|n| identity(&node.wait_running(n))).collect()
}

#[test]
fn a_killed_daemon_finds_its_pods_again() {
    let mut node = Node::start();
    let before = steady(&node, &["a", "b", "c"]);
    node.put("crash", &format!("  containers:\n{}", shell("main", "exit 1", "")));
    let count = |p: &serde_json::Value| p["status"]["containerStatuses"][0]["restartCount"].as_u64();
    node.wait("crash", "to be restarted", |p| (count(p) > Some(0)).then_some(()));
    node.bosun.kill();
    node.remove("c");
    node.bosun.start_again(&mut node.bed).expect("starts again");
    assert_eq!(same(&node, &["a", "b"]), before[..2], "same containers, no restarts");
    node.wait("crash", "to keep its count", |p| (count(p) > Some(0)).then_some(()));
    wait_until("the pod whose file went away to be stopped", SOON, || {
        let left: Vec<_> = node.runtime().into_iter().filter(|c| c.0 == "c-bed").collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}\n{}", node.bosun.log())) }
    })
    .expect("stopped and removed");
}

#[test]
fn an_end_while_the_daemon_was_away_is_told_afterwards() {
    let mut node = Node::start();
    let traces = node.traces();
    let spec = format!(
        "  restartPolicy: Never\n  containers:\n{}  volumes:\n  - name: t\n    hostPath: {{path: {}}}\n",
        shell(
            "main",
            "until [ -e /t/end ]; do sleep 0.1; done; exit 9",
            "    volumeMounts: [{name: t, mountPath: /t}]\n"
        ),
        traces.display()
    );
    node.put("ends", &spec);
    node.wait_running("ends");
    node.bosun.kill();
    std::fs::write(traces.join("end"), "").expect("written");
    wait_until("the container to end", SOON, || match node.runtime().first() {
        Some(c) if c.3 != 1 => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .expect("ended");
    node.bosun.start_again(&mut node.bed).expect("starts again");
    let pod = node.wait_phase("ends", "Failed");
    assert_eq!(state(&pod, "terminated")["exitCode"], 9, "{pod}");
}

#[test]
fn sigterm_ends_the_daemon_and_no_pod() {
    let mut node = Node::start();
    let before = steady(&node, &["a", "b"]);
    let status = node.bosun.terminate(Duration::from_secs(10)).expect("ends");
    assert!(status.success(), "{status}");
    assert!(node.runtime().iter().all(|c| c.3 == 1), "{:?}", node.runtime());
    node.bosun.start_again(&mut node.bed).expect("starts again");
    assert_eq!(same(&node, &["a", "b"]), before);
}

#[test]
fn containerd_killed_and_back_restarts_nothing() {
    let mut node = Node::beside_its_runtime();
    let before = steady(&node, &["a", "b"]);
    node.bed.kill_runtime();
    node.put("new", &format!("  containers:\n{}", shell("main", "exec sleep 1000", "")));
    node.bosun.get("pods").expect("the daemon answers without its runtime");
    node.bed.start_runtime().expect("comes back");
    node.wait_running("new");
    assert_eq!(same(&node, &["a", "b"]), before);
}

#[test]
fn killed_actors_cost_no_container() {
    let node = Node::with(BosunOptions { faults: true, ..BosunOptions::default() });
    let names = ["a", "b", "c"];
    let before = steady(&node, &names);
    let pid = node.bosun.pid();
    let actors: Vec<String> =
        node.bosun.actors().expect("actors").iter().filter_map(|a| Some(a["name"].as_str()?.to_owned())).collect();
    assert!(actors.len() >= 5, "{actors:?}");
    for actor in &actors {
        node.bosun.fault(&format!("{actor}: panic#1")).expect("a rule");
    }
    // Work for everybody, so that each rule strikes.
    node.put("new", &format!("  containers:\n{}", shell("main", "exec sleep 1000", "")));
    node.wait_running("new");
    let restarts = node.bosun.actors().expect("actors").iter().filter(|a| a["restarts"].as_u64() > Some(0)).count();
    assert!(restarts > 0, "no rule struck");
    assert_eq!(node.bosun.pid(), pid);
    assert_eq!(same(&node, &names), before);
}
