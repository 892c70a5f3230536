use model::Timestamp;
use serde_json::json;

use super::*;
use crate::testing::*;
use model::probe::ProbeVerdict::Failure;

const LATER: Timestamp = Timestamp::from_secs(1_000_060);

fn two() -> Pod {
    pod(json!({"restartPolicy": "Never", "containers": [{"name": "a"}, {"name": "b"}]}))
}

fn with_inits() -> Pod {
    pod(json!({"restartPolicy": "Never",
        "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
        "containers": [{"name": "a"}]}))
}

#[test]
fn ready_to_start_containers_follows_the_sandbox_rows() {
    let host = || pod(json!({"hostNetwork": true, "containers": [{"name": "a"}]}));
    let change = |f: fn(&mut Seen)| {
        let mut seen = Seen::sandbox();
        f(&mut seen);
        seen
    };
    let rows: Vec<(&str, Pod, Seen, &str)> = vec![
        ("no sandbox", two(), Seen::nothing(), "False"),
        ("two ready", two(), Seen::sandbox().with_sandbox("s1", 1, true), "False"),
        ("newest not ready", two(), Seen::sandbox().with_sandbox("s1", 1, false), "False"),
        (
            "older one not ready",
            two(),
            Seen::nothing().with_sandbox("s0", 0, false).with_sandbox("s1", 1, true),
            "True",
        ),
        ("other network mode", host(), Seen::sandbox(), "False"),
        ("empty address", two(), change(|s| s.0.sandboxes[0].ips = Some(vec![String::new()])), "False"),
        ("no network status", two(), change(|s| s.0.sandboxes[0].ips = None), "True"),
        (
            "host network without address",
            host(),
            change(|s| (s.0.sandboxes[0].host_network, s.0.sandboxes[0].ips) = (Some(true), Some(vec![]))),
            "True",
        ),
        ("fine", two(), Seen::sandbox(), "True"),
    ];
    for (name, pod, seen, expected) in rows {
        assert_eq!(show_condition(&Case::new(pod, seen).generate(), ty::READY_TO_START), expected, "{name}");
    }
}

#[test]
fn initialized_rows() {
    let incomplete =
        |names: &str| format!("False ContainersNotInitialized: containers with incomplete status: [{names}]");
    let was_true = || status(json!({"phase": "Pending", "conditions": [{"type": "Initialized", "status": "True"}]}));
    let done = || Seen::sandbox().with("i X0 20 i0").with("s R 21 s0");
    let rows: Vec<(&str, Case, String)> = vec![
        ("no init containers", Case::new(two(), Seen::nothing()), "True".into()),
        ("nothing started", Case::new(with_inits(), Seen::nothing()), incomplete("i s")),
        ("init done, sidecar absent", Case::new(with_inits(), Seen::sandbox().with("i X0 20 i0")), incomplete("s")),
        ("init failed", Case::new(with_inits(), Seen::sandbox().with("i X1 20 i0")), incomplete("i s")),
        ("all done", Case::new(with_inits(), done()), "True".into()),
        ("sidecar not started", Case::new(with_inits(), done()).startup("s", "s0", Some(Failure)), incomplete("s")),
        (
            "a regular container runs though the sidecar restarts",
            Case::new(with_inits(), Seen::sandbox().with("i X0 20 i0").with("a R 22 a0")),
            "True".into(),
        ),
        ("was true before: stays", Case::new(with_inits(), Seen::nothing()).base(was_true()), "True".into()),
        (
            "succeeded",
            Case::new(with_inits(), Seen::sandbox().with("i X0 20 i0").with("s X0 21 s0").with("a X0 22 a0"))
                .terminal(),
            "True PodCompleted".into(),
        ),
    ];
    for (name, case, expected) in rows {
        assert_eq!(show_condition(&case.generate(), ty::INITIALIZED), expected, "{name}");
    }
}

#[test]
fn initialized_lists_unknown_before_incomplete() {
    let p = with_inits();
    let some = [container("i R - 0"), container("a W - 0")];
    let shown = initialized(&p, &some.each_ref(), "Pending", false).message.unwrap();
    assert_eq!(shown, "containers with unknown status: [s], containers with incomplete status: [i]");
    assert_eq!(initialized(&p, &[], "Pending", false).reason.as_deref(), Some("UnknownContainerStatuses"));
}

#[test]
fn containers_ready_rows() {
    let unready = |names: &str| format!("False ContainersNotReady: containers with unready status: [{names}]");
    let rows: Vec<(&str, Case, String)> = vec![
        ("none started", Case::new(two(), Seen::nothing()), unready("a b")),
        ("one runs", Case::new(two(), Seen::sandbox().with("a R 20 a0")), unready("b")),
        ("all run", Case::new(two(), Seen::sandbox().with("a R 20 a0").with("b R 20 b0")), "True".into()),
        ("sidecars count, plain init containers do not", Case::new(with_inits(), Seen::nothing()), unready("s a")),
        (
            "succeeded",
            Case::new(two(), Seen::sandbox().with("a X0 20 a0").with("b X0 20 b0")),
            "False PodCompleted".into(),
        ),
        ("failed", Case::new(two(), Seen::sandbox().with("a X0 20 a0").with("b X1 20 b0")), "False PodFailed".into()),
    ];
    for (name, case, expected) in rows {
        let status = case.generate();
        assert_eq!(show_condition(&status, ty::CONTAINERS_READY), expected, "{name}");
        assert_eq!(show_condition(&status, ty::READY), expected, "{name}: Ready says the same");
    }
    assert_eq!(containers_ready(&two(), &[], "Pending").reason.as_deref(), Some("UnknownContainerStatuses"));
    let partly = containers_ready(&two(), &[&container("a W - 0")], "Pending").message.unwrap();
    assert_eq!(partly, "containers with unknown status: [b], containers with unready status: [a]");
}

#[test]
fn readiness_gates_rows() {
    let gated = |conditions: serde_json::Value| {
        let mut p = pod(json!({"containers": [{"name": "a"}],
            "readinessGates": [{"conditionType": "x/one"}, {"conditionType": "x/two"}]}));
        p.status = Some(status(json!({ "conditions": conditions })));
        Case::new(p, Seen::sandbox().with("a R 20 a0")).generate()
    };
    let missing = "corresponding condition of pod readiness gate \"x/one\" does not exist.";
    let false_two = "the status of pod readiness gate \"x/two\" is not \"True\", but Unknown";
    let one = json!({"type": "x/one", "status": "True"});
    let two = |status: &str| json!({"type": "x/two", "status": status});
    let rows = [
        (
            "one missing, one not true",
            json!([two("Unknown")]),
            format!("False ReadinessGatesNotReady: {missing}, {false_two}"),
        ),
        ("one missing", json!([two("True")]), format!("False ReadinessGatesNotReady: {missing}")),
        ("all true", json!([one, two("True")]), "True".into()),
    ];
    for (name, conditions, expected) in rows {
        let status = gated(conditions);
        assert_eq!(show_condition(&status, ty::READY), expected, "{name}");
        assert_eq!(show_condition(&status, ty::CONTAINERS_READY), "True", "{name}");
    }
}

#[test]
fn foreign_conditions_come_from_the_api_and_disruption_target_from_base() {
    let mut p = two();
    p.status = Some(status(json!({"conditions": [
        {"type": "example.com/x", "status": "True"}, {"type": "Ready", "status": "True"},
        {"type": "DisruptionTarget", "status": "False"}]})));
    let b = status(
        json!({"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}]}),
    );
    let status = Case::new(p, Seen::nothing()).base(b).generate();
    let types: Vec<&str> = status.conditions.iter().flatten().map(|c| c.type_.as_str()).collect();
    let own = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    assert_eq!(types, [&["example.com/x", "DisruptionTarget"][..], &own[..]].concat());
    assert_eq!(show_condition(&status, ty::DISRUPTION_TARGET), "True TerminationByKubelet");
}

#[test]
fn transition_time_moves_only_with_the_verdict() {
    let mut case = Case::new(two(), Seen::sandbox());
    let first = case.generate();
    case.now = LATER;
    case.seen = Seen::sandbox().with("a R 20 a0").with("b R 20 b0").0;
    let second = case.base(first.clone()).generate();
    let time = |status: &PodStatus, type_: &str| find(status, type_).unwrap().last_transition_time.clone();
    assert_eq!(time(&first, ty::READY), NOW.to_api());
    assert_eq!(time(&second, ty::READY), LATER.to_api(), "False to True");
    assert_eq!(time(&second, ty::POD_SCHEDULED), NOW.to_api(), "unchanged");
}

#[test]
fn generation_is_stamped_on_status_and_own_conditions_and_never_goes_back() {
    let mut case = Case::new(two(), Seen::nothing());
    case.pod.metadata.generation = Some(3);
    let status = case.generate();
    assert_eq!(status.observed_generation, Some(3));
    assert!(status.conditions.iter().flatten().all(|c| c.observed_generation == Some(3)));
    case.pod.metadata.generation = Some(2);
    assert_eq!(case.clone().base(status).generate().observed_generation, Some(3));
    case.pod.metadata.generation = None;
    assert_eq!(case.generate().observed_generation, None, "a static pod has none");
}
