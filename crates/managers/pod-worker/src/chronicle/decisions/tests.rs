//! The numbers say what the plan says.

use std::time::Duration;

use model::Timestamp;
use model::allocation::Amounts;
use model::history::PodHistory;
use model::pod::ContainerKind;
use pod_plan::{
    Cause, ContainerKill, ContainerReset, ContainerResize, ContainerStart, CreateSandbox, Hold, How, KillPod,
    KillReason, PodPlan, Resize, SandboxChange, SandboxDecision, Wait,
};

use pod_plan::backoff::After;

use super::each;

const KILLS: [KillReason; 8] = [
    KillReason::Pod,
    KillReason::DefinitionChanged,
    KillReason::LivenessProbe,
    KillReason::StartupProbe,
    KillReason::Resize,
    KillReason::UnknownState,
    KillReason::PostStartHook,
    KillReason::RestartAll,
];
const CHANGES: [SandboxChange; 5] = [
    SandboxChange::Missing,
    SandboxChange::ManyReady,
    SandboxChange::NotReady,
    SandboxChange::NetworkMode,
    SandboxChange::NoAddress,
];

fn empty() -> PodPlan {
    PodPlan::new(SandboxDecision { changed: None, attempt: 0, id: None })
}

fn start(cause: Cause, hold: Option<Hold>, how: How) -> ContainerStart {
    let (kind, name) = (ContainerKind::Regular, "app".to_owned());
    ContainerStart { kind, index: 0, name, how, cause, hold, crashed_at: None, replaces: None }
}

/// A plan with everything in it that a plan can have.
fn all() -> PodPlan {
    let kill = |reason| ContainerKill {
        id: "c1".into(),
        name: "app".to_owned(),
        kind: ContainerKind::Regular,
        message: "Container app failed liveness probe, will be restarted".to_owned(),
        reason,
        restart: true,
    };
    let reset = ContainerReset {
        id: "c2".into(),
        name: "app".to_owned(),
        kind: ContainerKind::Regular,
        kill_first: true,
        source: false,
    };
    let create = || How::Create { attempt: Some(1) };
    let mut causes = vec![
        Cause::Absent,
        Cause::NewSandbox,
        Cause::PreviousInitDone,
        Cause::Exited { code: 137 },
        Cause::NotStarted,
        Cause::Interrupted,
        Cause::RestartAll,
        Cause::AllDone,
    ];
    causes.extend(KILLS.map(Cause::Killed));
    let mut regular: Vec<_> = causes.into_iter().map(|cause| start(cause, None, create())).collect();
    regular.push(start(Cause::Interrupted, None, How::Resume { id: "c3".into(), attempt: 0 }));
    for ms in [10_000, 80_000, 300_000, 1_500, 40] {
        let hold = Hold { delay: Duration::from_millis(ms), until: Timestamp::from_secs(1000), after: After::End };
        regular.push(start(Cause::Exited { code: 1 }, Some(hold), create()));
    }
    let amounts = Amounts::default();
    let resized = ContainerResize { id: "c4".into(), name: "app".to_owned(), wanted: amounts, actuated: amounts };
    PodPlan {
        purge_init: vec!["i1".into()],
        kill: KILLS.map(kill).into(),
        reset: vec![reset],
        prune_init: vec!["i2".into()],
        regular,
        resize: Resize { memory: vec![resized.clone()], cpu: vec![resized], ..Resize::default() },
        waits: vec![
            Wait::InitRunning("setup".to_owned()),
            Wait::SidecarStartup("proxy".to_owned()),
            Wait::SidecarLiveness("proxy".to_owned()),
        ],
        ..empty()
    }
}

fn said(plan: &PodPlan) -> Vec<String> {
    let mut said = Vec::new();
    each(plan, |decided, at| {
        // One at a time: what is the same as before would be counted.
        let mut history = PodHistory::default();
        pod_history::note(&mut history, decided, at.unwrap_or(Timestamp::ZERO));
        said.push(pod_history::sentence(&history, &history.transitions[0]));
    });
    said
}

#[test]
fn every_decision_is_told_in_the_words_of_the_plan() {
    let plan = all();
    assert_eq!(said(&plan), plan.explain());
    for cause in CHANGES {
        let create = CreateSandbox { attempt: 2, replaces: None, cause };
        let kill = KillPod {
            cause: Cause::Sandbox(cause),
            containers: Vec::new(),
            sandboxes: Vec::new(),
            anything_alive: true,
        };
        let plan = PodPlan { create_sandbox: Some(create), kill_pod: Some(kill), ..empty() };
        assert_eq!(said(&plan), plan.explain());
    }
    let failed = Cause::InitFailed { name: "setup".to_owned() };
    let kill = KillPod { cause: failed, containers: Vec::new(), sandboxes: Vec::new(), anything_alive: true };
    let plan = PodPlan { kill_pod: Some(kill), ..empty() };
    assert_eq!(said(&plan), plan.explain());
}

#[test]
fn a_back_off_lasts_from_the_crash_until_it_is_over() {
    let hold = Hold { delay: Duration::from_secs(40), until: Timestamp::from_secs(1000), after: After::End };
    let plan = PodPlan {
        regular: vec![start(Cause::Exited { code: 1 }, Some(hold), How::Create { attempt: None })],
        ..empty()
    };
    each(&plan, |decided, at| assert_eq!((decided.lasts_ms, at), (40_000, Some(Timestamp::from_secs(960)))));
}
