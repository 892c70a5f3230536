use std::time::Duration;

use crate::Change::{Remove, Set};
use crate::Next::{Exit, Run, Wait};
use crate::words::event;
use crate::{Idle, Life, Seen, SeenContainer, Settings, Times, Worker, probes_of};
use model::core::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    Pod, PodSpec, PodStatus, Probe,
};
use model::probe::ProbeKind::{self, Liveness, Readiness, Startup};
use model::probe::{ProbeOutcome, ProbeVerdict};
use model::{ContainerId, Timestamp};

const KINDS: [ProbeKind; 3] = [Startup, Readiness, Liveness];

fn settings(kind: ProbeKind) -> Settings {
    Settings::new(kind, &Probe::default(), false)
}

fn times(now: i64) -> Times {
    Times { now: Timestamp::from_secs(1000 + now), daemon_started: Timestamp::from_secs(1000), kept: None }
}

fn seen(id: &str, life: Life, started: bool) -> Seen {
    Seen { over: false, container: Some(SeenContainer { id: id.into(), life, started }) }
}

/// Running since 5 s after the daemon.
fn running(id: &str, started: bool) -> Seen {
    seen(id, Life::Running { since: Timestamp::from_secs(1005) }, started)
}

fn id(text: &str) -> ContainerId {
    text.into()
}

fn initial(kind: ProbeKind) -> ProbeVerdict {
    match kind {
        Startup => ProbeVerdict::Unknown,
        Readiness => ProbeVerdict::Failure,
        Liveness => ProbeVerdict::Success,
    }
}

#[test]
fn row_1_no_status_waits() {
    for kind in KINDS {
        let tick = Worker::new(settings(kind), false).tick(None, times(9));
        assert_eq!((tick.next, tick.changes), (Wait(Idle::NoStatus), vec![]), "{kind}");
    }
}

#[test]
fn row_2_a_terminal_phase_ends_it_and_its_result() {
    for kind in KINDS {
        let mut w = Worker::new(settings(kind), false);
        w.tick(Some(&running("a", true)), times(9));
        let tick = w.tick(Some(&Seen { over: true, ..running("a", true) }), times(10));
        assert_eq!((tick.next, tick.changes), (Exit, vec![Remove(id("a"))]), "{kind}");
    }
}

#[test]
fn row_3_no_container_waits() {
    for kind in KINDS {
        let tick = Worker::new(settings(kind), false).tick(Some(&Seen::default()), times(9));
        assert_eq!((tick.next, tick.changes), (Wait(Idle::NoContainer), vec![]), "{kind}");
    }
}

#[test]
fn row_4_a_new_instance_replaces_the_result_and_ends_the_hold() {
    for kind in KINDS {
        let mut w = Worker::new(settings(kind), false);
        let first = w.tick(Some(&running("a", kind != Startup)), times(9));
        assert_eq!(first.changes, [Set(id("a"), initial(kind))], "{kind}: seeded");
        assert_eq!(first.next, Run);
        let again = w.tick(Some(&running("a", kind != Startup)), times(10));
        assert_eq!(again.changes, [], "{kind}: nothing new");
        (0..3).for_each(|_| drop(w.finish(ProbeOutcome::Failure)));
        let next = w.tick(Some(&running("b", kind != Startup)), times(11));
        assert_eq!(next.changes, [Remove(id("a")), Set(id("b"), initial(kind))], "{kind}: the next instance");
        assert_eq!(next.next, Run, "{kind}: probed again");
    }
}

#[test]
fn row_5_on_hold_waits() {
    for kind in [Startup, Liveness] {
        let mut w = Worker::resumed(settings(kind), false, id("a"), ProbeVerdict::Failure);
        let tick = w.tick(Some(&running("a", kind == Liveness)), times(9));
        assert_eq!((tick.next, tick.changes), (Wait(Idle::OnHold), vec![]), "{kind}");
    }
}

#[test]
fn row_6_an_instance_that_ended_is_a_failure() {
    for kind in KINDS {
        for restarts in [true, false] {
            let mut w = Worker::new(settings(kind), false);
            w.tick(Some(&running("a", true)), times(9));
            (0..3).for_each(|_| drop(w.finish(ProbeOutcome::Success)));
            let on_hold = kind == Startup;
            let tick = w.tick(Some(&seen("a", Life::Terminated { restarts }, false)), times(10));
            match (on_hold, restarts) {
                (true, _) => assert_eq!(tick.next, Wait(Idle::OnHold), "{kind}: decided before"),
                (false, true) => {
                    assert_eq!(tick.next, Wait(Idle::NotRunning), "{kind}");
                    assert_eq!(tick.changes, [Set(id("a"), ProbeVerdict::Failure)], "{kind}");
                }
                (false, false) => {
                    assert_eq!(tick.next, Exit, "{kind}");
                    assert_eq!(tick.changes, [Set(id("a"), ProbeVerdict::Failure), Remove(id("a"))], "{kind}");
                }
            }
        }
    }
}

#[test]
fn row_6_an_instance_that_has_not_started_is_not_judged() {
    let mut w = Worker::new(settings(Liveness), false);
    let tick = w.tick(Some(&seen("a", Life::Waiting, false)), times(9));
    assert_eq!((tick.next, tick.changes), (Wait(Idle::NotRunning), vec![Set(id("a"), ProbeVerdict::Success)]));
}

#[test]
fn row_7_a_pod_that_is_being_deleted_keeps_readiness_only() {
    for kind in KINDS {
        let mut w = Worker::new(settings(kind), true);
        let tick = w.tick(Some(&running("a", true)), times(9));
        match kind {
            Readiness => assert_eq!(tick.next, Run, "edge 75"),
            Startup | Liveness => {
                assert_eq!(tick.next, Exit, "edge 75: {kind}");
                assert_eq!(tick.changes.last(), Some(&Remove(id("a"))));
                assert!(!tick.changes.contains(&Set(id("a"), ProbeVerdict::Failure)));
            }
        }
    }
}

#[test]
fn row_8_initial_delay_counts_whole_seconds_from_the_start_of_the_instance() {
    let delayed = Settings { initial_delay_s: 3, ..settings(Liveness) };
    let mut w = Worker::new(delayed, false);
    for (now, next) in [(5, Wait(Idle::InitialDelay)), (7, Wait(Idle::InitialDelay)), (8, Run), (20, Run)] {
        assert_eq!(w.tick(Some(&running("a", true)), times(now)).next, next, "{now}");
    }
    let almost = Times { now: Timestamp(times(8).now.0 - 1), ..times(8) };
    let mut fresh = Worker::new(delayed, false);
    assert_eq!(fresh.tick(Some(&running("a", true)), almost).next, Wait(Idle::InitialDelay));
    // Edge 76: a restarted container gets its delay again.
    let restarted = seen("b", Life::Running { since: times(20).now }, true);
    assert_eq!(w.tick(Some(&restarted), times(22)).next, Wait(Idle::InitialDelay));
    assert_eq!(w.tick(Some(&restarted), times(23)).next, Run);
}

/// Found by `cargo xtask conform`: a clock that was set back stopped the probes of all that ran, for as long as it was set back.
#[test]
fn row_8_a_clock_that_is_set_back_is_no_delay_but_the_delay_itself() {
    for (initial_delay_s, first) in [(0, Run), (3, Wait(Idle::InitialDelay))] {
        let delayed = Settings { initial_delay_s, ..settings(Liveness) };
        // It runs since 5. What is over stays over.
        let mut w = Worker::new(delayed, false);
        for now in [20, -3_600, 3] {
            assert_eq!(w.tick(Some(&running("a", true)), times(now)).next, Run, "{initial_delay_s} s, at {now}");
        }
        // One whose start lies in the future has its delay all the same, or it would be killed while it starts.
        let mut w = Worker::new(delayed, false);
        for (now, next) in [(-3_600, first), (-3_598, first), (-3_597, Run), (3, Run)] {
            assert_eq!(w.tick(Some(&running("a", true)), times(now)).next, next, "{initial_delay_s} s, at {now}");
        }
        // The clock is set back while it waits.
        let mut w = Worker::new(delayed, false);
        for (now, next) in [(6, first), (-3_600, first), (-3_597, Run)] {
            assert_eq!(w.tick(Some(&running("a", true)), times(now)).next, next, "{initial_delay_s} s, at {now}");
        }
    }
}

#[test]
fn row_9_startup_gates_the_others() {
    for kind in KINDS {
        for started in [true, false] {
            let want = match (kind, started) {
                (Startup, true) => Wait(Idle::Started),
                (Startup, false) | (Readiness | Liveness, true) => Run,
                (Readiness | Liveness, false) => Wait(Idle::NotStarted),
            };
            let mut w = Worker::new(settings(kind), false);
            assert_eq!(w.tick(Some(&running("a", started)), times(9)).next, want, "edge 71: {kind}, started {started}");
        }
    }
}

#[test]
fn row_10_an_error_counts_as_nothing() {
    let mut w = Worker::new(Settings { failure_threshold: 2, ..settings(Liveness) }, false);
    w.tick(Some(&running("a", true)), times(9));
    assert_eq!(w.finish(ProbeOutcome::Failure), None);
    assert_eq!(w.finish(ProbeOutcome::Error), None);
    assert_eq!(w.finish(ProbeOutcome::Failure), Some(Set(id("a"), ProbeVerdict::Failure)), "the run went on");
}

#[test]
fn row_11_thresholds_count_results_in_a_row() {
    use ProbeOutcome::{Failure as F, Success as S, Warning as W};
    let set = |v| Some(Set(id("a"), v));
    // (name, kind, success threshold, failure threshold, outcomes with what each changes)
    type Steps = Vec<(ProbeOutcome, Option<crate::Change>)>;
    let rows: Vec<(&str, ProbeKind, u32, u32, Steps)> = vec![
        ("readiness, one success is enough", Readiness, 1, 3, vec![(S, set(ProbeVerdict::Success)), (S, None)]),
        ("a warning is a success", Readiness, 1, 3, vec![(W, set(ProbeVerdict::Success))]),
        ("readiness needs two successes", Readiness, 2, 3, vec![(S, None), (S, set(ProbeVerdict::Success))]),
        (
            "a failure starts the run anew",
            Readiness,
            2,
            3,
            vec![(S, None), (F, None), (S, None), (S, set(ProbeVerdict::Success))],
        ),
        (
            "readiness flips back after three failures",
            Readiness,
            1,
            3,
            vec![(S, set(ProbeVerdict::Success)), (F, None), (F, None), (F, set(ProbeVerdict::Failure)), (F, None)],
        ),
        ("initial readiness is a failure already", Readiness, 1, 1, vec![(F, None)]),
        (
            "edge 74: the third failure of liveness",
            Liveness,
            1,
            3,
            vec![(F, None), (F, None), (F, set(ProbeVerdict::Failure))],
        ),
        ("success between two failures of liveness", Liveness, 1, 2, vec![(F, None), (S, None), (F, None)]),
        ("startup succeeds", Startup, 1, 3, vec![(F, None), (S, set(ProbeVerdict::Success))]),
        ("edge 71: startup fails", Startup, 1, 2, vec![(F, None), (F, set(ProbeVerdict::Failure))]),
    ];
    for (name, kind, success_threshold, failure_threshold, steps) in rows {
        let mut w = Worker::new(Settings { success_threshold, failure_threshold, ..settings(kind) }, false);
        w.tick(Some(&running("a", kind != Startup)), times(9));
        for (i, (outcome, want)) in steps.into_iter().enumerate() {
            assert_eq!(w.finish(outcome), want, "{name}, step {i}");
        }
    }
}

#[test]
fn row_12_a_decided_instance_is_left_alone() {
    let rows = [
        (Liveness, ProbeOutcome::Failure, Wait(Idle::OnHold)),
        (Liveness, ProbeOutcome::Success, Run),
        (Startup, ProbeOutcome::Failure, Wait(Idle::OnHold)),
        (Startup, ProbeOutcome::Success, Wait(Idle::OnHold)),
        (Readiness, ProbeOutcome::Failure, Run),
        (Readiness, ProbeOutcome::Success, Run),
    ];
    for (kind, outcome, want) in rows {
        let mut w = Worker::new(Settings { failure_threshold: 1, ..settings(kind) }, false);
        w.tick(Some(&running("a", kind != Startup)), times(9));
        w.finish(outcome);
        assert_eq!(w.tick(Some(&running("a", kind != Startup)), times(10)).next, want, "{kind} {outcome:?}");
    }
}

#[test]
fn failures_of_a_former_instance_do_not_count() {
    let mut w = Worker::new(Settings { failure_threshold: 2, ..settings(Liveness) }, false);
    w.tick(Some(&running("a", true)), times(9));
    w.finish(ProbeOutcome::Failure);
    w.tick(Some(&running("b", true)), times(10));
    assert_eq!(w.finish(ProbeOutcome::Failure), None);
}

#[test]
fn instances_older_than_the_daemon_are_not_seeded_8_5() {
    let old = |started| seen("a", Life::Running { since: Timestamp::from_secs(989) }, started);
    let young = seen("a", Life::Running { since: Timestamp::from_secs(990) }, true);
    for kind in KINDS {
        let mut w = Worker::new(settings(kind), false);
        assert_eq!(w.tick(Some(&old(true)), times(1)).changes, [], "edge 70: {kind}");
        let mut w = Worker::new(settings(kind), false);
        assert_eq!(
            w.tick(Some(&young), times(1)).changes,
            [Set(id("a"), initial(kind))],
            "{kind}: exactly ten seconds"
        );
    }
    let sidecar = Settings { sidecar: true, ..settings(Startup) };
    let tick = Worker::new(sidecar, false).tick(Some(&old(true)), times(1));
    assert_eq!(tick.changes, [Set(id("a"), ProbeVerdict::Success)], "a started sidecar must not stall initialisation");
    let tick = Worker::new(sidecar, false).tick(Some(&old(false)), times(1));
    assert_eq!((tick.changes, tick.next), (vec![], Run));
}

#[test]
fn a_verdict_kept_by_an_earlier_daemon_counts_for_its_instance() {
    let old = seen("a", Life::Running { since: Timestamp::from_secs(1) }, true);
    let kept = |verdict, kind| {
        let given = Times { kept: Some(verdict), ..times(1) };
        Worker::new(settings(kind), false).tick(Some(&old), given)
    };
    let tick = kept(ProbeVerdict::Success, Readiness);
    assert_eq!((tick.changes, tick.next), (vec![Set(id("a"), ProbeVerdict::Success)], Run), "edge 70");
    let tick = kept(ProbeVerdict::Failure, Liveness);
    assert_eq!((tick.changes, tick.next), (vec![Set(id("a"), ProbeVerdict::Failure)], Wait(Idle::OnHold)));
    let tick = kept(ProbeVerdict::Success, Startup);
    assert_eq!((tick.changes, tick.next), (vec![Set(id("a"), ProbeVerdict::Success)], Wait(Idle::OnHold)));
    let given = Times { kept: Some(ProbeVerdict::Success), ..times(9) };
    let tick = Worker::new(settings(Readiness), false).tick(Some(&running("a", true)), given);
    assert_eq!(tick.changes, [Set(id("a"), ProbeVerdict::Success)], "however young it is: an earlier daemon knew it");
}

#[test]
fn a_hold_ends_with_its_instance_even_when_the_next_is_not_seeded() {
    let mut w = Worker::resumed(settings(Liveness), false, id("a"), ProbeVerdict::Failure);
    let old = seen("b", Life::Running { since: Timestamp::from_secs(1) }, true);
    let tick = w.tick(Some(&old), times(1));
    assert_eq!((tick.changes, tick.next), (vec![Remove(id("a"))], Run));
}

#[test]
fn an_unseeded_readiness_publishes_its_first_verdict() {
    let old = seen("a", Life::Running { since: Timestamp::from_secs(1) }, true);
    let mut w = Worker::new(settings(Readiness), false);
    assert_eq!(w.tick(Some(&old), times(1)).next, Run);
    assert_eq!(w.finish(ProbeOutcome::Success), Some(Set(id("a"), ProbeVerdict::Success)));
}

#[test]
fn a_resumed_worker_keeps_its_verdict() {
    let mut w = Worker::resumed(settings(Readiness), false, id("a"), ProbeVerdict::Success);
    let tick = w.tick(Some(&running("a", true)), times(9));
    assert_eq!((tick.next, tick.changes), (Run, vec![]));
}

#[test]
fn the_view_is_read_from_the_status() {
    let rule = |policy: &str| {
        let c = Container { name: "m".into(), ..Container::default() };
        let spec = PodSpec { containers: vec![c], restart_policy: Some(policy.into()), ..PodSpec::default() };
        Pod { spec: Some(spec), ..Pod::default() }
    };
    let state = |s: ContainerState| PodStatus {
        phase: Some("Running".into()),
        container_statuses: Some(vec![ContainerStatus {
            name: "m".into(),
            container_id: Some("containerd://abc".into()),
            started: Some(true),
            state: Some(s),
            ..ContainerStatus::default()
        }]),
        ..PodStatus::default()
    };
    let ended = |code| ContainerState {
        terminated: Some(ContainerStateTerminated { exit_code: code, ..ContainerStateTerminated::default() }),
        ..ContainerState::default()
    };
    let up = ContainerState {
        running: Some(ContainerStateRunning { started_at: Timestamp::from_secs(7).to_api() }),
        ..ContainerState::default()
    };
    let waiting = ContainerState { waiting: Some(ContainerStateWaiting::default()), ..ContainerState::default() };
    let life = |policy: &str, s: ContainerState| {
        let pod = rule(policy);
        Seen::of(&pod, &pod.spec.as_ref().unwrap().containers[0], &state(s)).container.unwrap()
    };
    assert_eq!(life("Always", up.clone()).life, Life::Running { since: Timestamp::from_secs(7) });
    assert_eq!(life("Always", up).id, id("abc"));
    assert_eq!(life("Always", waiting).life, Life::Waiting);
    assert_eq!(life("Always", ended(0)).life, Life::Terminated { restarts: true });
    assert_eq!(life("OnFailure", ended(0)).life, Life::Terminated { restarts: false });
    assert_eq!(life("OnFailure", ended(1)).life, Life::Terminated { restarts: true });
    assert_eq!(life("Never", ended(1)).life, Life::Terminated { restarts: false });

    let pod = rule("Always");
    let container = &pod.spec.as_ref().unwrap().containers[0];
    assert_eq!(Seen::of(&pod, container, &PodStatus::default()), Seen::default());
    let failed = PodStatus { phase: Some("Failed".into()), ..PodStatus::default() };
    assert!(Seen::of(&pod, container, &failed).over);
    let mut no_id = state(ContainerState::default());
    no_id.container_statuses.as_mut().unwrap()[0].container_id = Some(String::new());
    assert_eq!(Seen::of(&pod, container, &no_id).container, None);
}

#[test]
fn a_sidecar_always_restarts() {
    let c = Container { name: "s".into(), restart_policy: Some("Always".into()), ..Container::default() };
    let spec =
        PodSpec { init_containers: Some(vec![c.clone()]), restart_policy: Some("Never".into()), ..PodSpec::default() };
    let pod = Pod { spec: Some(spec), ..Pod::default() };
    let status = PodStatus {
        init_container_statuses: Some(vec![ContainerStatus {
            name: "s".into(),
            container_id: Some("x://1".into()),
            state: Some(ContainerState {
                terminated: Some(ContainerStateTerminated::default()),
                ..ContainerState::default()
            }),
            ..ContainerStatus::default()
        }]),
        ..PodStatus::default()
    };
    assert_eq!(Seen::of(&pod, &c, &status).container.unwrap().life, Life::Terminated { restarts: true });
}

#[test]
fn plain_init_and_ephemeral_containers_are_not_probed_8_1() {
    let probed = |name: &str, policy: Option<&str>| Container {
        name: name.into(),
        restart_policy: policy.map(str::to_owned),
        startup_probe: Some(Probe::default()),
        liveness_probe: Some(Probe::default()),
        ..Container::default()
    };
    let spec = PodSpec {
        init_containers: Some(vec![probed("i", None), probed("s", Some("Always"))]),
        containers: vec![probed("m", None)],
        ..PodSpec::default()
    };
    let pod = Pod { spec: Some(spec), ..Pod::default() };
    let got: Vec<_> = probes_of(&pod).map(|(c, s, _)| (c.name.as_str(), s.kind, s.sidecar)).collect();
    assert_eq!(got, [("s", Startup, true), ("s", Liveness, true), ("m", Startup, false), ("m", Liveness, false)]);
}

#[test]
fn absent_numbers_take_the_api_defaults() {
    let s = settings(Liveness);
    assert_eq!((s.period, s.timeout), (Duration::from_secs(10), Duration::from_secs(1)));
    assert_eq!((s.success_threshold, s.failure_threshold, s.initial_delay_s), (1, 3, 0));
    let zero = Probe { period_seconds: Some(0), timeout_seconds: Some(0), ..Probe::default() };
    assert_eq!(Settings::new(Liveness, &zero, false), s);
}

#[test]
fn events_speak_as_a_kubelet_8_3() {
    let rows = [
        (Readiness, ProbeOutcome::Success, "ok", None),
        (Readiness, ProbeOutcome::Failure, "not yet\n", Some(("Unhealthy", "Readiness probe failed: not yet\n"))),
        (Liveness, ProbeOutcome::Failure, "x", Some(("Unhealthy", "Liveness probe failed: x"))),
        (
            Startup,
            ProbeOutcome::Error,
            "gone",
            Some(("Unhealthy", "Startup probe errored and resulted in unknown state: gone")),
        ),
        (Liveness, ProbeOutcome::Warning, "moved", Some(("ProbeWarning", "Liveness probe warning: moved"))),
    ];
    for (kind, outcome, output, want) in rows {
        assert_eq!(event(kind, outcome, output), want.map(|(r, m)| (r, m.to_owned())));
    }
}

#[test]
fn output_is_clipped_to_ten_kib() {
    assert_eq!(crate::words::clip(&vec![b'x'; 20_000]).len(), 10 * 1024);
    assert_eq!(crate::words::clip(b"short"), "short");
}
