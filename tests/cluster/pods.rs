//! What a pod goes through, as those see it who watch.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::{Seen, Watch};

use crate::node::{
    LASTS, PODS, SOON, condition, create, delete, lasting, pod, running, shell, start, state, wait, wait_gone,
    wait_phase, wait_reasons, wait_running,
};

/// Phase and readiness of each version that a watch saw, repetitions left out.
fn steps(seen: &[Seen]) -> Vec<(String, String)> {
    let word = |v: &Value| v.as_str().unwrap_or("-").to_owned();
    let mut steps: Vec<(String, String)> = seen
        .iter()
        .map(|e| (word(&e.object["status"]["phase"]), word(&condition(&e.object, "Ready")["status"])))
        .collect();
    steps.dedup();
    steps
}

/// What a watch saw of a pod, once it has told of a version that looks as `good` says: another one may have told before it.
fn seen_until(watch: &Watch, name: &str, good: impl Fn(&Seen) -> bool) -> Vec<Seen> {
    testbed::wait_until(&format!("the watch to tell of {name}"), SOON, || {
        let seen = watch.about(name);
        if seen.last().is_some_and(&good) { Ok(seen) } else { Err(format!("{:?}", steps(&seen))) }
    })
    .unwrap_or_else(|e| panic!("{e}"))
}

fn is_ready(event: &Seen) -> bool {
    condition(&event.object, "Ready")["status"] == "True"
}

fn step(phase: &str, ready: &str) -> (String, String) {
    (phase.to_owned(), ready.to_owned())
}

#[test]
fn a_bound_pod_runs_and_a_watch_sees_each_step() {
    let node = start();
    let watch = node.cluster.admin().watch(PODS).expect("a watch");
    create(&node, &lasting("plain"));
    let pod = wait_running(&node, "plain");
    let status = &pod["status"];
    assert_eq!(status["hostIP"], node.bed.node_ip());
    assert!(status["podIP"].as_str().is_some_and(|ip| ip.starts_with("10.")), "{status}");
    assert_eq!(status["podIPs"][0]["ip"], status["podIP"]);
    assert_eq!(status["qosClass"], "BestEffort");
    assert!(status["startTime"].is_string(), "{status}");
    for kind in ["PodScheduled", "Initialized", "ContainersReady", "Ready"] {
        assert_eq!(condition(&pod, kind)["status"], "True", "{kind}: {status}");
    }
    let container = &status["containerStatuses"][0];
    assert_eq!(container["name"], "main");
    assert_eq!((&container["ready"], &container["started"]), (&json!(true), &json!(true)), "{container}");
    assert_eq!(container["restartCount"], 0);
    assert!(container["state"]["running"]["startedAt"].is_string(), "{container}");
    assert!(container["containerID"].as_str().is_some_and(|id| id.starts_with(node.bed.scheme())), "{container}");
    assert!(container["imageID"].as_str().is_some_and(|id| !id.is_empty()), "{container}");
    let seen = seen_until(&watch, "plain", is_ready);
    assert_eq!(
        steps(&seen),
        [step("Pending", "-"), step("Pending", "False"), step("Running", "True")],
        "as a kubelet: created, accepted, running"
    );
    assert!(seen.len() <= 4, "{} versions", seen.len());
    wait_reasons(&node, "plain", &["Pulled", "Created", "Started"]);
}

#[test]
fn a_deletion_takes_as_long_as_the_container_and_then_the_object_goes() {
    let node = start();
    let script = "trap 'sleep 2; exit 0' TERM; echo up; while :; do sleep 0.1; done";
    let spec = json!({"terminationGracePeriodSeconds": 30, "containers": [shell("main", script, json!({}))]});
    let made = create(&node, &pod("graceful", spec));
    wait_running(&node, "graceful");
    crate::node::wait_output(&node, &made, "the trap", |t| t.contains("up"));
    let watch = node.cluster.admin().watch(PODS).expect("a watch");
    let begin = Instant::now();
    delete(&node, "graceful");
    wait_gone(&node, "graceful");
    let took = begin.elapsed();
    assert!(took > Duration::from_millis(1900), "the container was given its time: {took:?}");
    assert!(took < Duration::from_secs(20), "nobody waited for the grace to end: {took:?}");
    let seen = seen_until(&watch, "graceful", |e| e.kind == "DELETED");
    let last = &seen[seen.len() - 1];
    assert_eq!(last.object["status"]["phase"], "Succeeded", "the object went with its last status");
    assert_eq!(state(&last.object, "terminated")["exitCode"], 0, "{}", last.object["status"]);
    assert_eq!(running(&node), Vec::<String>::new());
    wait_reasons(&node, "graceful", &["Killing"]);
    let deletes = node.cluster.requests_by(&node.user()).expect("audit");
    let deletes: Vec<_> = deletes.iter().filter(|r| r.verb == "delete" && r.resource == "pods").collect();
    assert_eq!(deletes.len(), 1, "{deletes:?}");
}

#[test]
fn the_deaf_are_killed_when_the_grace_is_over() {
    let node = start();
    let script = "trap '' TERM; while :; do sleep 0.1; done";
    create(&node, &pod("deaf", json!({"containers": [shell("main", script, json!({}))]})));
    wait_running(&node, "deaf");
    let begin = Instant::now();
    delete(&node, "deaf");
    wait_gone(&node, "deaf");
    let took = begin.elapsed();
    assert!(took > Duration::from_millis(1900) && took < Duration::from_secs(20), "grace of 2 s: {took:?}");
}

#[test]
fn a_pod_that_ends_stays_ended_with_its_exit_codes() {
    let mut node = start();
    let never = |script: &str| json!({"restartPolicy": "Never", "containers": [shell("main", script, json!({}))]});
    create(&node, &pod("good", never("exit 0")));
    create(&node, &pod("bad", never("echo -n why > /dev/termination-log; exit 3")));
    let good = wait_phase(&node, "good", "Succeeded");
    assert_eq!(state(&good, "terminated")["reason"], "Completed");
    assert_eq!(condition(&good, "Ready")["reason"], "PodCompleted", "{}", good["status"]);
    let bad = wait_phase(&node, "bad", "Failed");
    let end = state(&bad, "terminated").clone();
    assert_eq!((&end["exitCode"], &end["reason"], &end["message"]), (&json!(3), &json!("Error"), &json!("why")));
    node.bosun.kill();
    node.start_again().expect("starts again");
    create(&node, &lasting("later"));
    wait_running(&node, "later");
    assert_eq!(state(&wait_phase(&node, "bad", "Failed"), "terminated"), &end, "told once, kept for ever");
    delete(&node, "bad");
    wait_gone(&node, "bad");
}

#[test]
fn a_crashing_container_is_restarted_and_backed_off() {
    let node = start();
    create(&node, &pod("crash", json!({"containers": [shell("main", "exit 7", json!({}))]})));
    let seen = wait(&node, "crash", "to back off", |p| {
        (state(p, "waiting")["reason"] == "CrashLoopBackOff").then(|| p.clone())
    });
    let container = &seen["status"]["containerStatuses"][0];
    assert!(container["restartCount"].as_u64() >= Some(1), "{container}");
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 7, "{container}");
    assert_eq!(seen["status"]["phase"], "Running");
    wait_reasons(&node, "crash", &["BackOff"]);
}

#[test]
fn init_containers_and_probes_are_told_as_they_go() {
    let node = start();
    let probe = json!({"readinessProbe": {"exec": {"command": ["test", "-e", "/tmp/ok"]}, "periodSeconds": 1}});
    let spec = json!({
        "initContainers": [shell("first", "sleep 1", json!({}))],
        "containers": [shell("main", "sleep 2; touch /tmp/ok; sleep 1000", probe)],
    });
    let watch = node.cluster.admin().watch(PODS).expect("a watch");
    create(&node, &pod("slow", spec));
    wait_running(&node, "slow");
    let seen = seen_until(&watch, "slow", is_ready);
    let uninitialized = seen.iter().any(|e| {
        let c = condition(&e.object, "Initialized");
        c["status"] == "False" && c["reason"] == "ContainersNotInitialized"
    });
    assert!(uninitialized, "{:?}", steps(&seen));
    assert!(steps(&seen).contains(&step("Running", "False")), "runs before it is ready: {:?}", steps(&seen));
    let last = &seen[seen.len() - 1].object;
    assert_eq!(last["status"]["initContainerStatuses"][0]["state"]["terminated"]["reason"], "Completed");
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason_of_a_kubelet() {
    let node = start();
    let container = || shell("main", LASTS, json!({}));
    create(&node, &pod("elsewhere", json!({"nodeSelector": {"disk": "ssd"}, "containers": [container()]})));
    let refused = wait_phase(&node, "elsewhere", "Failed");
    assert_eq!(refused["status"]["reason"], "NodeAffinity", "{}", refused["status"]);
    let many = json!({"resources": {"requests": {"cpu": "4000"}}});
    create(&node, &pod("greedy", json!({"containers": [shell("main", LASTS, many)]})));
    let refused = wait_phase(&node, "greedy", "Failed");
    assert_eq!(refused["status"]["reason"], "OutOfcpu", "{}", refused["status"]);
    wait_reasons(&node, "greedy", &["OutOfcpu"]);
    let port = || shell("main", LASTS, json!({"ports": [{"containerPort": 80, "hostPort": 31_951}]}));
    create(&node, &pod("first", json!({"containers": [port()]})));
    wait_running(&node, "first");
    create(&node, &pod("second", json!({"containers": [port()]})));
    let refused = wait_phase(&node, "second", "Failed");
    assert_eq!(refused["status"]["reason"], "NodePorts", "{}", refused["status"]);
}

#[test]
fn pods_cost_few_requests() {
    let node = start();
    let names: Vec<String> = (0..5).map(|n| format!("p{n}")).collect();
    for name in &names {
        create(&node, &lasting(name));
    }
    for name in &names {
        wait_running(&node, name);
        delete(&node, name);
    }
    for name in &names {
        wait_gone(&node, name);
    }
    let all = node.cluster.requests_by(&node.user()).expect("audit");
    // What an older server refuses is said once more in its own words, and not again.
    let taken = |r: &testbed::Request| r.code < 400;
    let about = |r: &&testbed::Request| taken(r) && r.resource.starts_with("pods") && names.contains(&r.object.1);
    let ours: Vec<String> = all.iter().filter(about).map(|r| format!("{} {}", r.verb, r.uri)).collect();
    assert!(ours.len() <= 6 * names.len(), "more than six per life: {ours:#?}");
}
