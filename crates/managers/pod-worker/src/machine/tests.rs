use super::*;
use contract::pod_worker::WorkerPhase::*;
use model::core::{PodSpec, PodStatus};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

fn pod(edit: impl FnOnce(&mut Pod)) -> Arc<Pod> {
    let mut p = Pod::default();
    p.metadata.uid = Some("u".into());
    p.spec = Some(PodSpec { termination_grace_period_seconds: Some(30), ..Default::default() });
    edit(&mut p);
    Arc::new(p)
}

fn api() -> Arc<Pod> {
    pod(|_| ())
}

fn from_file() -> Arc<Pod> {
    pod(|p| {
        drop(p.metadata.annotations.get_or_insert_default().insert(model::pod::CONFIG_SOURCE.into(), "file".into()))
    })
}

fn create(p: &Arc<Pod>) -> UpdatePod {
    UpdatePod { uid: "u".into(), pod: Some(p.clone()), kind: UpdateKind::Create, pending: None, is_behind: false }
}

fn kill(grace_s: Option<i64>) -> UpdatePod {
    UpdatePod {
        uid: "u".into(),
        pod: None,
        kind: UpdateKind::Kill(KillRequest { grace_s, deleted: true, ..Default::default() }),
        pending: None,
        is_behind: false,
    }
}

fn syncing() -> Machine {
    let mut m = Machine::default();
    m.update(create(&api()), false);
    m
}

#[test]
fn an_api_pod_syncs_at_once_and_a_static_pod_waits_for_its_slot() {
    let mut m = Machine::default();
    assert_eq!((m.update(create(&api()), false), m.step()), (Reaction::Step, Step::Sync));
    let mut m = Machine::default();
    assert_eq!((m.update(create(&from_file()), false), m.step()), (Reaction::Step, Step::Rest));
    assert_eq!((m.grant(), m.step()), (Reaction::Step, Step::Sync));
    assert_eq!(m.grant(), Reaction::Nothing);
}

#[test]
fn a_static_pod_killed_before_it_started_is_finished_without_a_step() {
    let mut m = Machine::default();
    m.update(create(&from_file()), false);
    m.update(kill(None), false);
    assert_eq!((m.phase, m.step()), (Finished, Step::Rest));
}

#[test]
fn a_terminal_pod_of_which_nothing_is_left_is_only_cleaned_up() {
    let done = pod(|p| p.status = Some(PodStatus { phase: Some("Failed".into()), ..Default::default() }));
    let mut m = Machine::default();
    m.update(create(&done), false);
    assert_eq!((m.phase, m.step()), (Terminated, Step::CleanUp));
    let mut m = Machine::default();
    m.update(create(&done), true);
    assert_eq!(
        (m.phase, m.step()),
        (Terminating, Step::Terminate),
        "but it is stopped first when something still runs"
    );
}

#[test]
fn every_cause_of_termination_is_seen() {
    let deleting = pod(|p| p.metadata.deletion_timestamp = Some(Time(Default::default())));
    let failed = pod(|p| p.status = Some(PodStatus { phase: Some("Failed".into()), ..Default::default() }));
    let table = [
        (
            "deletion timestamp",
            UpdatePod {
                uid: "u".into(),
                pod: Some(deleting),
                kind: UpdateKind::Update,
                pending: None,
                is_behind: false,
            },
            true,
        ),
        (
            "terminal phase",
            UpdatePod { uid: "u".into(), pod: Some(failed), kind: UpdateKind::Update, pending: None, is_behind: false },
            false,
        ),
        ("kill", kill(None), true),
    ];
    for (what, msg, deleted) in table {
        let mut m = syncing();
        assert_eq!(m.update(msg, true), Reaction::Interrupt, "{what}");
        assert_eq!((m.phase, m.kill.deleted), (Terminating, deleted), "{what}");
    }
}

#[test]
fn an_update_never_brings_a_stopping_pod_back() {
    let mut m = syncing();
    m.update(kill(None), true);
    assert_eq!(m.update(create(&api()), true), Reaction::Nothing);
    m.update(
        UpdatePod { uid: "u".into(), pod: Some(api()), kind: UpdateKind::Update, pending: None, is_behind: false },
        true,
    );
    assert_eq!(m.phase, Terminating);
}

#[test]
fn grace_only_gets_shorter_and_is_at_least_one_second() {
    let mut m = syncing();
    m.update(kill(None), true);
    assert_eq!(m.grace_s, Some(30));
    assert_eq!(m.update(kill(Some(5)), true), Reaction::Interrupt);
    assert_eq!(m.grace_s, Some(5));
    assert_eq!(m.update(kill(Some(60)), true), Reaction::Step);
    assert_eq!(m.grace_s, Some(5));
    m.update(kill(Some(0)), true);
    assert_eq!(m.grace_s, Some(1));
}

#[test]
fn a_pod_that_only_the_runtime_knows_is_stopped_and_then_finished() {
    let mut m = Machine::default();
    m.update(kill(Some(1)), true);
    assert_eq!((m.step(), m.grace_s), (Step::TerminateOrphan, Some(1)));
    m.stopped();
    assert_eq!(m.phase, Finished);
}

#[test]
fn phases_follow_each_other_to_the_end() {
    let mut m = syncing();
    m.ran_to_end();
    assert_eq!((m.phase, m.kill.deleted), (Terminating, false));
    m.stopped();
    assert_eq!(m.step(), Step::CleanUp);
    m.cleaned();
    assert_eq!((m.phase, m.step()), (Finished, Step::Rest));
    assert_eq!(m.update(create(&api()), false), Reaction::Nothing, "finished is final");
}

#[test]
fn a_kill_while_volumes_are_removed_changes_nothing_but_is_remembered() {
    let mut m = syncing();
    m.ran_to_end();
    m.stopped();
    assert_eq!(m.update(kill(None), false), Reaction::Nothing);
    assert!(m.kill.deleted);
    assert_eq!(m.phase, Terminated);
}

#[test]
fn an_equal_update_is_no_reason_for_a_step() {
    let mut m = syncing();
    assert_eq!(
        m.update(
            UpdatePod { uid: "u".into(), pod: Some(api()), kind: UpdateKind::Update, pending: None, is_behind: false },
            true
        ),
        Reaction::Nothing
    );
    assert_eq!(
        m.update(
            UpdatePod { uid: "u".into(), pod: Some(api()), kind: UpdateKind::Sync, pending: None, is_behind: false },
            true
        ),
        Reaction::Step
    );
}

#[test]
fn a_rebuilt_worker_goes_on_where_its_row_says() {
    for phase in [Waiting, Syncing, Terminating, Terminated, Finished] {
        let stopping = phase >= Terminating;
        let row = WorkerState {
            deleted: stopping,
            pod: Some(from_file()),
            kill: stopping.then(|| KillRequest { grace_s: Some(7), ..Default::default() }),
            ..WorkerState::new(phase)
        };
        let m = Machine::recover(&row);
        assert_eq!(m.phase, phase);
        assert_eq!(m.grace_s, stopping.then_some(7));
        assert_eq!(m.granted, phase != Waiting);
    }
}
