//! What starts before what, and what stops before what.

use std::time::{Duration, Instant};

use crate::node::{Node, shell, state};

const MOUNT: &str = "    volumeMounts: [{name: t, mountPath: /traces}]\n";

fn volume(node: &Node) -> String {
    format!("  volumes:\n  - name: t\n    hostPath: {{path: {}}}\n", node.traces().display())
}

/// Says its name, then waits for SIGTERM and says so.
fn lasting(name: &str) -> String {
    format!(
        "trap 'echo {name}-ends >> /traces/trace; exit 0' TERM; echo {name} >> /traces/trace; while :; do sleep 0.1; done"
    )
}

#[test]
fn init_containers_run_one_after_the_other_before_the_rest() {
    let node = Node::start();
    let spec = format!(
        "  initContainers:\n{}{}  containers:\n{}{}",
        shell("one", "sleep 0.5; echo one >> /traces/trace", MOUNT),
        shell("two", "echo two >> /traces/trace", MOUNT),
        shell("main", &lasting("main"), MOUNT),
        volume(&node)
    );
    node.put("ordered", &spec);
    let pod = node.wait_running("ordered");
    assert_eq!(node.wait_trace("three words", |t| t.len() >= 3), ["one", "two", "main"]);
    let init = &pod["status"]["initContainerStatuses"];
    assert_eq!(init[0]["state"]["terminated"]["reason"], "Completed", "{init}");
    assert_eq!(init[1]["state"]["terminated"]["exitCode"], 0, "{init}");
}

#[test]
fn a_failed_init_container_keeps_the_rest_from_starting() {
    let node = Node::start();
    let spec = format!(
        "  restartPolicy: Never\n  initContainers:\n{}  containers:\n{}{}",
        shell("one", "exit 5", MOUNT),
        shell("main", &lasting("main"), MOUNT),
        volume(&node)
    );
    node.put("blocked", &spec);
    let pod = node.wait_phase("blocked", "Failed");
    assert_eq!(pod["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"], 5, "{pod}");
    assert_eq!(state(&pod, "waiting")["reason"], "PodInitializing", "{pod}");
    assert_eq!(node.trace(), Vec::<String>::new());
}

#[test]
fn a_sidecar_starts_before_and_stops_after_the_others() {
    let node = Node::start();
    let sidecar = format!("    restartPolicy: Always\n{MOUNT}");
    let spec = format!(
        "  terminationGracePeriodSeconds: 10\n  initContainers:\n{}{}  containers:\n{}{}",
        shell("side", &lasting("side"), &sidecar),
        shell("one", "echo one >> /traces/trace", MOUNT),
        shell("main", &lasting("main"), MOUNT),
        volume(&node)
    );
    node.put("escorted", &spec);
    node.wait_running("escorted");
    assert_eq!(node.wait_trace("three words", |t| t.len() >= 3), ["side", "one", "main"]);
    node.remove("escorted");
    node.wait_gone("escorted");
    assert_eq!(node.trace()[3..], ["main-ends", "side-ends"]);
}

#[test]
fn hooks_run_after_the_start_and_before_the_stop() {
    let node = Node::start();
    let hooks = format!(
        "{MOUNT}    lifecycle:\n      postStart: {{exec: {{command: [sh, -c, \"echo post-start >> /traces/trace\"]}}}}\n      \
         preStop: {{exec: {{command: [sh, -c, \"echo pre-stop >> /traces/trace\"]}}}}\n"
    );
    let spec = format!("  containers:\n{}{}", shell("main", &lasting("main"), &hooks), volume(&node));
    node.put("hooked", &spec);
    node.wait_running("hooked");
    let trace = node.wait_trace("both words", |t| t.len() >= 2);
    assert!(trace.contains(&"post-start".to_owned()) && trace.contains(&"main".to_owned()), "{trace:?}");
    node.remove("hooked");
    node.wait_gone("hooked");
    assert_eq!(node.trace()[2..], ["pre-stop", "main-ends"]);
}

#[test]
fn a_failed_post_start_hook_kills_the_container() {
    let node = Node::start();
    let hook = format!("{MOUNT}    lifecycle:\n      postStart: {{exec: {{command: [sh, -c, \"exit 4\"]}}}}\n");
    let spec = format!(
        "  terminationGracePeriodSeconds: 1\n  containers:\n{}{}",
        shell("main", &lasting("main"), &hook),
        volume(&node)
    );
    node.put("hook-fails", &spec);
    node.wait("hook-fails", "to be restarted", |p| {
        (p["status"]["containerStatuses"][0]["restartCount"].as_u64() > Some(0)).then_some(())
    });
}

#[test]
fn a_stop_is_graceful_for_those_who_listen_and_forced_for_the_deaf() {
    let node = Node::start();
    let spec = |script: &str, grace: u32| {
        format!(
            "  terminationGracePeriodSeconds: {grace}\n  containers:\n{}{}",
            shell("main", script, MOUNT),
            volume(&node)
        )
    };
    node.put("listens", &spec(&lasting("main"), 20));
    node.put("deaf", &spec("trap '' TERM; while :; do sleep 1; done", 2));
    node.wait_running("listens");
    node.wait_running("deaf");
    node.wait_trace("the trap to be set", |t| !t.is_empty());
    let begin = Instant::now();
    node.remove("listens");
    node.wait_gone("listens");
    assert!(begin.elapsed() < Duration::from_secs(18), "did not wait out the grace of 20 s: {:?}", begin.elapsed());
    assert_eq!(node.trace(), ["main", "main-ends"]);
    let begin = Instant::now();
    node.remove("deaf");
    node.wait_gone("deaf");
    let took = begin.elapsed();
    assert!(took > Duration::from_millis(1900) && took < Duration::from_secs(12), "grace of 2 s: {took:?}");
}
