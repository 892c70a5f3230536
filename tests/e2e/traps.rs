//! Pods that put something else where the daemon looks for a file: it goes on serving everybody.

use std::time::{Duration, Instant};

use testbed::wait_until;

use crate::node::{Node, SOON, shell, state};

/// More than the daemon has threads for work that blocks (32 in `actor`), so that one lost thread for each would be noticed.
const ATTACKERS: usize = 34;
/// For all of them on two busy cores; without the defence none of them would ever be told of.
const LONG: Duration = Duration::from_secs(120);

/// An unprivileged pod whose termination message is what `make` put into an emptyDir.
fn attacker(make: &str) -> String {
    let volume = "    volumeMounts: [{name: v, mountPath: /v}]\n";
    let trap = "    terminationMessagePath: /end\n    volumeMounts: [{name: v, mountPath: /end, subPath: trap}]\n";
    format!(
        "  restartPolicy: Never\n  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n  initContainers:\n{}  containers:\n{}  \
         volumes: [{{name: v, emptyDir: {{}}}}]\n",
        shell("make", make, volume),
        shell("main", "exit 1", trap)
    )
}

fn healthy(node: &Node, name: &str) {
    let spec = format!("  terminationGracePeriodSeconds: 1\n  containers:\n{}", shell("main", "exec sleep 1000", ""));
    node.put(name, &spec);
    node.wait_running(name);
}

/// Waits until the pod has ended, and answers with its message.
fn message(node: &Node, name: &str) -> String {
    let ended = node.bosun.wait_pod(name, "to fail", LONG, |p| (p["status"]["phase"] == "Failed").then(|| p.clone()));
    let pod = ended.unwrap_or_else(|e| panic!("{e}"));
    state(&pod, "terminated")["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn termination_messages_that_are_pipes_hold_up_nobody() {
    let mut node = Node::start();
    healthy(&node, "before");
    let names: Vec<String> = (0..ATTACKERS).map(|n| format!("pipe-{n}")).collect();
    for name in &names {
        node.put(name, &attacker("mkfifo /v/trap"));
    }
    node.put("device", &attacker("mknod /v/trap c 1 3"));
    for name in names.iter().map(String::as_str).chain(["device"]) {
        let message = message(&node, name);
        assert!(message.contains("not a regular file"), "{name}: {message:?}");
    }
    let began = Instant::now();
    healthy(&node, "after");
    node.remove("before");
    node.wait_gone("before");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());

    // Each of them is looked at anew by a daemon that starts.
    node.bosun.kill();
    node.bosun.start_again(&mut node.bed).expect("starts again");
    healthy(&node, "again");
    for name in &names {
        node.remove(name);
    }
    wait_until("the pods to go", LONG, || {
        let pods = node.bosun.pods().map_err(|e| e.to_string())?;
        let left =
            pods.iter().filter(|p| p["metadata"]["name"].as_str().is_some_and(|n| n.starts_with("pipe-"))).count();
        if left == 0 { Ok(()) } else { Err(format!("{left} are left")) }
    })
    .unwrap_or_else(|e| panic!("{e}"));
    node.remove("after");
    node.wait_gone("after");
}
