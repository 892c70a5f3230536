//! Starting, ending, restarting: what a user of static pods sees first.

use testbed::wait_until;

use crate::node::{Node, SOON, shell, state};

#[test]
fn a_pod_from_the_folder_runs_and_goes_with_its_file() {
    let node = Node::start();
    let spec = format!("  terminationGracePeriodSeconds: 1\n  containers:\n{}", shell("main", "exec sleep 1000", ""));
    node.put("web", &spec);
    let pod = node.wait_running("web");
    let status = &pod["status"];
    assert!(status["podIP"].as_str().is_some_and(|ip| ip.starts_with("10.")), "{status}");
    assert_eq!(status["containerStatuses"][0]["ready"], true, "{status}");
    let ready = status["conditions"].as_array().into_iter().flatten().find(|c| c["type"] == "Ready");
    assert_eq!(ready.map(|c| &c["status"]), Some(&"True".into()), "{status}");
    node.remove("web");
    node.wait_gone("web");
    wait_until("the runtime to be empty", SOON, || {
        let left = node.runtime();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .expect("containers and sandbox are removed");
}

#[test]
fn exit_codes_decide_the_phase() {
    let node = Node::start();
    let never = "  restartPolicy: Never\n  containers:\n";
    node.put("good", &format!("{never}{}", shell("main", "exit 0", "")));
    node.put("bad", &format!("{never}{}", shell("main", "exit 3", "")));
    let good = node.wait_phase("good", "Succeeded");
    let bad = node.wait_phase("bad", "Failed");
    assert_eq!(state(&good, "terminated")["exitCode"], 0, "{good}");
    assert_eq!(state(&good, "terminated")["reason"], "Completed", "{good}");
    assert_eq!(state(&bad, "terminated")["exitCode"], 3, "{bad}");
    assert_eq!(state(&bad, "terminated")["reason"], "Error", "{bad}");
    assert_eq!(node.runtime().len(), 2, "each ran once");
}

#[test]
fn a_termination_message_is_shown() {
    let node = Node::start();
    let script = "echo farewell > /dev/termination-log; exit 1";
    node.put("last-words", &format!("  restartPolicy: Never\n  containers:\n{}", shell("main", script, "")));
    let pod = node.wait_phase("last-words", "Failed");
    assert_eq!(state(&pod, "terminated")["message"], "farewell\n", "{pod}");
}

#[test]
fn on_failure_restarts_until_success() {
    let node = Node::start();
    let traces = node.traces();
    let script = "echo try >> /traces/trace; [ $(wc -l < /traces/trace) -ge 2 ]";
    let spec = format!(
        "  restartPolicy: OnFailure\n  containers:\n{}  volumes:\n  - name: t\n    hostPath: {{path: {}}}\n",
        shell("main", script, "    volumeMounts: [{name: t, mountPath: /traces}]\n"),
        traces.display()
    );
    node.put("stubborn", &spec);
    let pod = node.wait_phase("stubborn", "Succeeded");
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 1, "{pod}");
    assert_eq!(node.trace(), ["try", "try"]);
}

#[test]
fn a_crash_loop_backs_off_and_says_so() {
    let node = Node::start();
    node.put("crash", &format!("  containers:\n{}", shell("main", "exit 7", "")));
    let pod =
        node.wait("crash", "to back off", |p| (state(p, "waiting")["reason"] == "CrashLoopBackOff").then(|| p.clone()));
    let container = &pod["status"]["containerStatuses"][0];
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 7, "{pod}");
    let message = state(&pod, "waiting")["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("back-off") && message.contains("container=main"), "{message}");
    let count = |p: &serde_json::Value| p["status"]["containerStatuses"][0]["restartCount"].as_u64();
    // By the runtime's own times, in whole seconds: when this is seen does not count.
    let time = |value: &serde_json::Value| value.as_str()?.parse::<jiff::Timestamp>().ok();
    let ended = time(&container["lastState"]["terminated"]["finishedAt"]).expect("when it ended");
    let seen = count(&pod);
    let started = node.wait("crash", "to be tried again", |p| {
        let container = &p["status"]["containerStatuses"][0];
        let states = [&container["state"], &container["lastState"]];
        let mut instances = states.into_iter().flat_map(|s| [&s["running"], &s["terminated"]]);
        let started = instances.find_map(|i| time(&i["startedAt"]));
        started.filter(|_| count(p) > seen)
    });
    let waited = started.as_second() - ended.as_second();
    assert!(waited >= 9, "tried again {waited} s after its end");
}

#[test]
fn a_killed_container_comes_back_under_restart_policy_always() {
    let node = Node::start();
    node.put("web", &format!("  containers:\n{}", shell("main", "exec sleep 1000", "")));
    let before = node.wait_running("web");
    let id = before["status"]["containerStatuses"][0]["containerID"].as_str().expect("id").to_owned();
    node.bed.kill_container(&id).expect("killed");
    let after = node.wait("web", "to run again", |p| {
        let running = state(p, "running").is_object();
        (running && p["status"]["containerStatuses"][0]["restartCount"] == 1).then(|| p.clone())
    });
    assert_eq!(after["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"], 137, "{after}");
    assert_eq!(before["status"]["podIP"], after["status"]["podIP"], "the sandbox stays");
}
