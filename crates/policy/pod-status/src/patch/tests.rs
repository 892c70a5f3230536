use serde_json::json;

use super::*;
use crate::testing::*;

#[test]
fn a_rejected_pod_says_why_and_nothing_else() {
    let status = rejected(&app_pod("Always"), "OutOfcpu", "Node didn't have enough resource: cpu");
    let expected = json!({"phase": "Failed", "reason": "OutOfcpu", "qosClass": "BestEffort",
        "message": "Pod was rejected: Node didn't have enough resource: cpu"});
    assert_eq!(serde_json::to_value(status).unwrap(), expected);
}

#[test]
fn counts_that_were_told_are_kept() {
    let mut status = base("Running", &["app R - 2"]);
    assert_eq!(counts(&status), BTreeMap::from([("app".to_owned(), 2)]));
    for (told, kept) in [(1, 2), (3, 3)] {
        keep_counts(&mut status, &BTreeMap::from([("app".to_owned(), told), ("gone".to_owned(), 7)]));
        assert_eq!(status.container_statuses.as_ref().unwrap()[0].restart_count, kept);
    }
    assert!(counts(&base("Running", &["app R - 0"])).is_empty());
}

#[test]
fn disruption_rows() {
    let preempt = "Pod was preempted by Kubelet to accommodate a critical pod.";
    let shutdown = "Pod was terminated in response to imminent node shutdown.";
    let rows = [
        ("evicted", Disruption::Evicted("low on memory".into()), "Evicted", "low on memory", Some("low on memory")),
        ("over local storage", Disruption::OverLocalStorage("too much".into()), "Evicted", "too much", None),
        ("preempted", Disruption::Preempted, "Preempting", "Preempted in order to admit critical pod", Some(preempt)),
        ("shutdown", Disruption::NodeShutdown, "Terminated", shutdown, Some(shutdown)),
    ];
    for (name, why, reason, message, condition) in rows {
        let mut status = base("Running", &["app R - 0"]);
        disrupt(&mut status, &why, NOW);
        let told = [&status.phase, &status.reason, &status.message].map(|s| s.as_deref().unwrap());
        assert_eq!(told, ["Failed", reason, message], "{name}");
        let target = condition.map_or("absent".into(), |c| format!("True TerminationByKubelet: {c}"));
        assert_eq!(show_condition(&status, ty::DISRUPTION_TARGET), target, "{name}");
    }
}

#[test]
fn shutdown_leaves_a_succeeded_pod_alone() {
    let mut status = base("Succeeded", &["app T0 - 0"]);
    let before = status.clone();
    disrupt(&mut status, &Disruption::NodeShutdown, NOW);
    assert_eq!(status, before);
}

#[test]
fn edge_89_eviction_survives_the_next_generate() {
    let case = Case::new(app_pod("Always"), Seen::sandbox().with("app R 20 a"));
    let mut status = case.generate();
    disrupt(&mut status, &Disruption::Evicted("low on memory".into()), NOW);
    let mut later = case.base(status).terminal();
    later.seen = Seen::sandbox().with("app X137 20 a").0;
    let status = later.generate();
    assert_eq!((status.phase.as_deref(), status.reason.as_deref()), (Some("Failed"), Some("Evicted")));
    assert_eq!(show_condition(&status, ty::DISRUPTION_TARGET), "True TerminationByKubelet: low on memory");
}

#[test]
fn a_new_sandbox_is_said_at_once() {
    let before = Case::new(app_pod("Always"), Seen::nothing()).generate();
    let later = Timestamp::from_secs(1_000_005);
    let after = sandbox_ready(&before, later);
    assert_eq!(show_condition(&after, ty::READY_TO_START), "True");
    let condition = crate::conditions::find(&after, ty::READY_TO_START).unwrap();
    assert_eq!((condition.last_transition_time.clone(), condition.observed_generation), (later.to_api(), Some(1)));
    assert_eq!(sandbox_ready(&after, Timestamp::from_secs(2_000_000)), after, "twice changes nothing");
}

#[test]
fn terminated_rows() {
    let two_inits = || {
        pod(json!({"restartPolicy": "Always", "initContainers": [{"name": "i"}, {"name": "j"}],
            "containers": [{"name": "a"}, {"name": "b"}]}))
    };
    let gone = "T137(ContainerStatusUnknown)";
    // (name, init statuses, regular statuses, expected init, expected regular)
    type Row = (&'static str, [&'static str; 2], [&'static str; 2], [&'static str; 2], [&'static str; 2]);
    let rows: Vec<Row> = vec![
        (
            "nothing began: only the first init container counts as failed",
            ["i W - 0", "j W - 0"],
            ["a W - 0", "b W - 0"],
            [gone, "W(ContainerCreating)"],
            ["W(ContainerCreating)", "W(ContainerCreating)"],
        ),
        (
            "second init container was in back-off",
            ["i T0 - 0", "j W T1 0"],
            ["a W - 0", "b W - 0"],
            ["T0(Error)", gone],
            ["W(ContainerCreating)", "W(ContainerCreating)"],
        ),
        (
            "last init container ended well",
            ["i T0 - 0", "j T0 - 0"],
            ["a W - 0", "b W - 0"],
            ["T0(Error)", "T0(Error)"],
            [gone, gone],
        ),
        (
            "last init container ended well before",
            ["i T0 - 0", "j R T0 0"],
            ["a W - 0", "b W - 0"],
            ["T0(Error)", gone],
            [gone, gone],
        ),
        (
            "a regular container ran",
            ["i T0 - 0", "j T0 - 0"],
            ["a R - 0", "b T3 - 0"],
            ["T0(Error)", "T0(Error)"],
            [gone, "T3(Error)"],
        ),
        (
            "a regular container has a last state",
            ["i W - 0", "j W - 0"],
            ["a W T1 1", "b W - 0"],
            [gone, "W(ContainerCreating)"],
            [gone, gone],
        ),
    ];
    for (name, init, regular, want_init, want_regular) in rows {
        let mut status = base("Running", &regular);
        status.init_container_statuses = Some(init.iter().map(|c| container(c)).collect());
        let after = terminated(&two_inits(), &status);
        let states = |list: &Option<Vec<ContainerStatus>>| -> Vec<String> {
            list.iter().flatten().map(|c| show_state(c.state.as_ref())).collect()
        };
        assert_eq!(states(&after.init_container_statuses), want_init, "{name}: init");
        assert_eq!(states(&after.container_statuses), want_regular, "{name}: regular");
        assert_eq!(after.phase.as_deref(), Some("Failed"), "{name}");
    }
}

#[test]
fn terminated_with_a_sidecar_last_asks_whether_it_had_started() {
    let p = pod(json!({"containers": [{"name": "a"}], "initContainers": [{"name": "s", "restartPolicy": "Always"}]}));
    let state = |started: bool| {
        let mut status = base("Pending", &["a W - 0"]);
        let side = ContainerStatus { started: Some(started), ..container("s R - 0") };
        status.init_container_statuses = Some(vec![side]);
        show_state(terminated(&p, &status).container_statuses.unwrap()[0].state.as_ref())
    };
    assert_eq!(state(true), "T137(ContainerStatusUnknown)");
    assert_eq!(state(false), "W(ContainerCreating)");
}

#[test]
fn terminated_keeps_a_terminal_phase_and_static_pods() {
    let phase = |pod: &Pod, phase: &str| terminated(pod, &base(phase, &["app T0 - 0"])).phase.unwrap();
    let plain = app_pod("Always");
    assert_eq!(phase(&plain, "Succeeded"), "Succeeded");
    assert_eq!(phase(&plain, "Pending"), "Failed");
    assert_eq!(phase(&as_static(plain), "Running"), "Running");
    let bare = terminated(&app_pod("Always"), &base("Pending", &["app W - 0"]));
    assert_eq!(show_state(bare.container_statuses.unwrap()[0].state.as_ref()), "T137(ContainerStatusUnknown)");
}
