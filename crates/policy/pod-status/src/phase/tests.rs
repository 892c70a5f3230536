use serde_json::json;

use super::*;
use crate::testing::*;

fn phase(pod: &Pod, all: &[ContainerStatus], restart_all: bool, terminal: bool, current: bool) -> &'static str {
    super::phase(pod, &all.iter().collect::<Vec<_>>(), restart_all, terminal, current)
}

/// i: plain init, s: sidecar, a and b: regular.
fn full(policy: &str) -> Pod {
    pod(json!({"restartPolicy": policy,
        "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
        "containers": [{"name": "a"}, {"name": "b"}]}))
}

fn two(policy: &str) -> Pod {
    pod(json!({"restartPolicy": policy, "containers": [{"name": "a"}, {"name": "b"}]}))
}

fn started(short: &str) -> ContainerStatus {
    ContainerStatus { started: Some(true), ..container(short) }
}

fn list(shorts: &[&str]) -> Vec<ContainerStatus> {
    shorts.iter().map(|s| container(s)).collect()
}

#[test]
fn rows_without_init_containers() {
    // (name, pod, statuses, is_terminal, expected)
    let rows: Vec<(&str, Pod, &[&str], bool, &str)> = vec![
        ("nothing known", two("Always"), &[], false, "Pending"),
        ("3: one waits though the other runs", two("Always"), &["a R - 0", "b W - 0"], false, "Pending"),
        ("4: all run", two("Always"), &["a R - 0", "b R - 0"], false, "Running"),
        ("4: one runs, one stopped", two("Never"), &["a R - 0", "b T1 - 0"], false, "Running"),
        ("4: one runs, one unknown", two("Never"), &["a R - 0"], false, "Pending"),
        ("5: terminal, all succeeded", two("Always"), &["a T0 - 0", "b T0 - 0"], true, "Succeeded"),
        ("5: terminal, one failed", two("Always"), &["a T0 - 0", "b T1 - 0"], true, "Failed"),
        ("5: terminal, one in back-off counts as failed", two("Always"), &["a T0 - 0", "b W T0 0"], true, "Failed"),
        ("5: static pods are not forced", as_static(two("Always")), &["a T0 - 0", "b T1 - 0"], true, "Running"),
        ("6: stopped but restartable", two("Always"), &["a T0 - 0", "b T0 - 0"], false, "Running"),
        ("6: back-off under Always", two("Always"), &["a W T1 3", "b T0 - 0"], false, "Running"),
        ("6: OnFailure, one failed", two("OnFailure"), &["a T0 - 0", "b T1 - 0"], false, "Running"),
        (
            "6: being restarted with all others",
            two("Never"),
            &["a W:RestartingAllContainers T137:RestartingAllContainers 1", "b T1 - 0"],
            false,
            "Running",
        ),
        ("7: OnFailure, all succeeded", two("OnFailure"), &["a T0 - 0", "b T0 - 0"], false, "Succeeded"),
        ("7: Never, all succeeded", two("Never"), &["a T0 - 0", "b T0 - 0"], false, "Succeeded"),
        ("8: Never, one failed", two("Never"), &["a T0 - 0", "b T1 - 0"], false, "Failed"),
        ("9: stopped and unknown", two("Never"), &["a T0 - 0"], false, "Pending"),
        (
            "edge 78: deleting Always pod, all exited 0",
            deleting(two("Always")),
            &["a T0 - 0", "b T0 - 0"],
            true,
            "Succeeded",
        ),
    ];
    for (name, pod, statuses, terminal, expected) in rows {
        assert_eq!(phase(&pod, &list(statuses), true, terminal, true), expected, "{name}");
    }
}

#[test]
fn rows_with_init_containers_and_sidecars() {
    let run = ["a R - 0", "b R - 0"];
    let wait = ["a W - 0", "b W - 0"];
    // (name, policy, init statuses, started sidecar, regular statuses, current regular exists, expected)
    type Row<'a> = (&'a str, &'a str, &'a [&'a str], Option<&'a str>, &'a [&'a str], bool, &'a str);
    let rows: Vec<Row> = vec![
        ("1: init failed under Never", "Never", &["i T3 - 0"], None, &wait, false, "Failed"),
        ("1: init failed in back-off under Never", "Never", &["i W T3 0"], None, &wait, false, "Failed"),
        ("1: init failed but restarts", "OnFailure", &["i T3 - 0"], None, &wait, false, "Pending"),
        ("2: init absent", "Always", &[], Some("s R - 0"), &run, true, "Pending"),
        ("2: init runs", "Always", &["i R - 0"], Some("s R - 0"), &wait, false, "Pending"),
        ("2: init waits", "Always", &["i W - 0"], Some("s R - 0"), &wait, false, "Pending"),
        (
            "2: sidecar not started, no regular container",
            "Never",
            &["i T0 - 0", "s R - 0"],
            None,
            &["a T0 - 0", "b T0 - 0"],
            false,
            "Pending",
        ),
        (
            "2: sidecar not started, regular containers exist",
            "Always",
            &["i T0 - 0", "s R - 0"],
            None,
            &run,
            true,
            "Running",
        ),
        ("3: sidecar waits for its first start", "Always", &["i T0 - 0", "s W - 0"], None, &run, true, "Pending"),
        ("4: all run", "Always", &["i T0 - 0"], Some("s R - 0"), &run, true, "Running"),
        ("4: a restarting sidecar is left out", "Always", &["i T0 - 0", "s W T1 4"], None, &run, true, "Running"),
        ("4: a dead sidecar is left out", "Always", &["i T0 - 0", "s T1 - 4"], None, &run, true, "Running"),
        ("a sidecar without status is unknown", "Always", &["i T0 - 0"], None, &run, true, "Pending"),
        (
            "7: regular containers done, sidecar dead",
            "Never",
            &["i T0 - 0", "s T137 - 0"],
            None,
            &["a T0 - 0", "b T0 - 0"],
            true,
            "Succeeded",
        ),
        (
            "4: regular containers done, sidecar still runs",
            "Never",
            &["i T0 - 0"],
            Some("s R - 0"),
            &["a T0 - 0", "b T0 - 0"],
            true,
            "Running",
        ),
    ];
    for (name, policy, init, sidecar, regular, current, expected) in rows {
        let mut all = list(init);
        all.extend(sidecar.map(started));
        all.extend(list(regular));
        assert_eq!(phase(&full(policy), &all, true, false, current), expected, "{name}");
    }
}

#[test]
fn an_init_container_with_its_own_policy_decides_for_itself() {
    let p = pod(json!({"restartPolicy": "Never", "containers": [{"name": "a"}], "initContainers": [{"name": "i",
        "restartPolicy": "Never", "restartPolicyRules": [
            {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]}]}));
    assert_eq!(phase(&p, &list(&["i T42 - 0", "a W - 0"]), true, false, false), "Pending");
    assert_eq!(phase(&p, &list(&["i T41 - 0", "a W - 0"]), true, false, false), "Failed");
}

/// A pod whose rule restarts all: what was removed for it is no failure, init containers that never restart by themselves
/// included.
#[test]
fn containers_removed_to_restart_all_have_not_failed() {
    let p = pod(json!({"restartPolicy": "Never", "initContainers": [{"name": "i"}], "containers": [{"name": "a"}]}));
    let removed = "W:RestartingAllContainers T137:RestartingAllContainers 1";
    let statuses = list(&[&format!("i {removed}"), &format!("a {removed}")]);
    assert_eq!(phase(&p, &statuses, true, false, false), "Running");
    assert_eq!(phase(&p, &statuses, false, false, false), "Failed", "the gate is off");
    let again = list(&["i R T137:RestartingAllContainers 1", &format!("a {removed}")]);
    assert_eq!(phase(&p, &again, true, false, false), "Pending");
}
