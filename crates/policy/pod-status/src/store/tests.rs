use model::core::{ContainerStateTerminated, PodCondition};
use serde_json::json;

use super::*;
use crate::testing::*;

#[test]
fn illegal_transition_rows() {
    let ruled = || {
        pod(json!({"restartPolicy": "Never", "containers": [{"name": "app", "restartPolicy": "Never",
            "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]}]}))
    };
    let restart_all = || {
        pod(json!({"restartPolicy": "Never", "containers": [{"name": "app"}, {"name": "x", "restartPolicy": "Never",
            "restartPolicyRules": [{"action": "RestartAllContainers"}]}]}))
    };
    let rows: Vec<(&str, Pod, &str, &str, bool)> = vec![
        ("Always", app_pod("Always"), "app T0 - 0", "app R - 1", true),
        ("OnFailure after a failure", app_pod("OnFailure"), "app T1 - 0", "app R - 1", true),
        ("OnFailure after success", app_pod("OnFailure"), "app T0 - 0", "app R - 1", false),
        ("Never to running", app_pod("Never"), "app T1 - 0", "app R - 1", false),
        ("Never to waiting", app_pod("Never"), "app T1 - 0", "app W T1 0", false),
        ("Never to another end", app_pod("Never"), "app T1 - 0", "app T2 - 0", true),
        ("Never from running", app_pod("Never"), "app R - 0", "app W - 0", true),
        ("a rule allows it", ruled(), "app T42 - 0", "app R - 1", true),
        ("no rule allows it", ruled(), "app T41 - 0", "app R - 1", false),
        ("restart-all pods are exempt", restart_all(), "app T1 - 0", "app R - 1", true),
        ("another container", app_pod("Never"), "app T1 - 0", "other R - 1", true),
    ];
    for (name, pod, old, new, legal) in rows {
        let verdict = check_transition(&pod, &base("Running", &[old]), &base("Running", &[new]));
        assert_eq!(verdict.is_ok(), legal, "{name}");
        if let Err(illegal) = verdict {
            assert_eq!(illegal.container, "app", "{name}");
        }
    }
}

#[test]
fn illegal_transition_of_init_containers_exempts_sidecars() {
    let p = pod(json!({"restartPolicy": "Never", "containers": [{"name": "a"}],
        "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]}));
    let with =
        |short: &str| PodStatus { init_container_statuses: Some(vec![container(short)]), ..PodStatus::default() };
    assert!(check_transition(&p, &with("s T0 - 0"), &with("s R - 1")).is_ok());
    assert!(check_transition(&p, &with("i T0 - 0"), &with("i R - 1")).is_err());
}

/// Its record was lost with the runtime's, and it was started once more.
#[test]
fn what_runs_as_another_instance_is_told() {
    let p = pod(json!({"restartPolicy": "OnFailure", "containers": [{"name": "a"}]}));
    let with = |short: &str, id: &str| {
        let one = ContainerStatus { container_id: Some(format!("containerd://{id}")), ..container(short) };
        PodStatus { container_statuses: Some(vec![one]), ..PodStatus::default() }
    };
    let ended = with("a T0 - 0", "a0");
    assert!(check_transition(&p, &ended, &with("a R - 1", "a1")).is_ok());
    assert!(check_transition(&p, &ended, &with("a R - 0", "a0")).is_err(), "stale");
    assert!(check_transition(&p, &ended, &with("a W - 1", "a1")).is_err(), "it has not begun");
}

#[test]
fn edge_86_messages_share_the_budget_of_the_pod() {
    let containers: Vec<_> = (0..20).map(|n| json!({"name": format!("c{n:02}")})).collect();
    let p = pod(json!({ "containers": containers }));
    let message = |text: String| ContainerState {
        terminated: Some(ContainerStateTerminated { message: Some(text), ..ContainerStateTerminated::default() }),
        ..ContainerState::default()
    };
    let mut long = container("c00 T1 - 0");
    long.state = Some(message("x".repeat(4096)));
    long.last_state = Some(message("é".repeat(4096)));
    let settled = settle(&p, PodStatus { container_statuses: Some(vec![long]), ..PodStatus::default() }, None, NOW);
    let kept = &settled.container_statuses.unwrap()[0];
    let bytes =
        |s: &Option<ContainerState>| s.as_ref().unwrap().terminated.as_ref().unwrap().message.as_ref().unwrap().len();
    assert_eq!(bytes(&kept.state), 614);
    assert_eq!(bytes(&kept.last_state), 614, "two bytes a character: cut at a boundary");
}

#[test]
fn a_cut_message_ends_at_a_character() {
    let p = app_pod("Always");
    let mut c = container("app T1 - 0");
    let text = format!("x{}", "é".repeat(7000));
    c.state.as_mut().unwrap().terminated.as_mut().unwrap().message = Some(text);
    let settled = settle(&p, PodStatus { container_statuses: Some(vec![c]), ..PodStatus::default() }, None, NOW);
    let kept = settled.container_statuses.unwrap().remove(0).state.unwrap().terminated.unwrap().message.unwrap();
    assert_eq!(kept.len(), 12_287);
}

#[test]
fn settling_sets_start_generation_times_and_order() {
    let p =
        pod(json!({"initContainers": [{"name": "z"}, {"name": "y"}], "containers": [{"name": "b"}, {"name": "a"}]}));
    let raw = || {
        let mut status = base("Running", &["b R - 0", "a R - 0"]);
        status.init_container_statuses = Some(vec![container("y W - 0"), container("z W - 0")]);
        status.conditions = status_json(r#"[{"type": "Ready", "status": "True"}, {"type": "x/y", "status": "True"}]"#);
        let odd = Time(model::k8s_openapi::jiff::Timestamp::from_nanosecond(5_700_000_000).unwrap());
        status.container_statuses.as_mut().unwrap()[0].state.as_mut().unwrap().running.as_mut().unwrap().started_at =
            Some(odd);
        status
    };
    let first = settle(&p, raw(), None, NOW);
    let names = |list: &Option<Vec<ContainerStatus>>| -> Vec<String> {
        list.iter().flatten().map(|c| c.name.clone()).collect()
    };
    assert_eq!(first.start_time, NOW.to_api(), "set on the first status");
    assert_eq!(first.observed_generation, Some(1));
    assert_eq!(names(&first.container_statuses), ["a", "b"]);
    assert_eq!(names(&first.init_container_statuses), ["z", "y"]);
    let b = &first.container_statuses.as_ref().unwrap()[1];
    let started = b.state.as_ref().unwrap().running.as_ref().unwrap().started_at.clone();
    assert_eq!(started, Timestamp::from_secs(5).to_api(), "cut to seconds");
    let conditions = first.conditions.as_ref().unwrap();
    assert_eq!(
        (conditions[0].last_transition_time.clone(), conditions[0].observed_generation),
        (NOW.to_api(), Some(1))
    );
    assert_eq!(conditions[1].last_transition_time, None, "a foreign condition is not touched");

    let later = settle(&p, raw(), Some(&first), Timestamp::from_secs(2_000_000));
    assert_eq!(later, first, "an equal status keeps every time");
}

fn status_json(conditions: &str) -> Option<Vec<PodCondition>> {
    serde_json::from_str(conditions).unwrap()
}

#[test]
fn equality_rows() {
    let one = || {
        let conditions = json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "x/y", "status": "True"}]);
        status(json!({"phase": "Running", "conditions": conditions, "resourceClaimStatuses": [{"name": "c"}]}))
    };
    let change = |f: fn(&mut PodStatus)| {
        let mut other = one();
        f(&mut other);
        other
    };
    let rows = [
        ("itself", one(), true),
        ("foreign condition", change(|s| s.conditions.as_mut().unwrap()[1].status = "False".into()), true),
        ("transition time", change(|s| s.conditions.as_mut().unwrap()[0].last_transition_time = None), true),
        ("probe time", change(|s| s.conditions.as_mut().unwrap()[0].last_probe_time = NOW.to_api()), true),
        ("order of conditions", change(|s| s.conditions.as_mut().unwrap().reverse()), true),
        ("claim statuses", change(|s| s.resource_claim_statuses = None), true),
        ("own condition", change(|s| s.conditions.as_mut().unwrap()[0].status = "False".into()), false),
        (
            "message of an own condition",
            change(|s| s.conditions.as_mut().unwrap()[0].message = Some("m".into())),
            false,
        ),
        (
            "a shared condition more",
            change(|s| s.conditions.as_mut().unwrap()[1].type_ = "DisruptionTarget".into()),
            false,
        ),
        ("phase", change(|s| s.phase = Some("Failed".into())), false),
        ("address", change(|s| s.pod_ip = Some("10.0.0.1".into())), false),
    ];
    for (name, other, same) in rows {
        assert_eq!(same_for_node(&one(), &other), same, "{name}");
    }
}
