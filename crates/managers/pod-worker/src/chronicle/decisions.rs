//! The decisions of a plan, in numbers.

use model::Timestamp;
use model::history::{Reason, What};
use pod_history::New;
use pod_plan::{Cause, ContainerStart, How, KillReason, PodPlan, SandboxChange, Wait};

/// Shows each decision in the order of [`PodPlan::explain`], and since when it holds, where that is not now.
pub(super) fn each<'a>(plan: &'a PodPlan, mut show: impl FnMut(New<'a>, Option<Timestamp>)) {
    if let Some(kill) = &plan.kill_pod {
        show(because(What::KillPod, "", &kill.cause), None);
    }
    let of_id = |what, id: &'a model::ContainerId| New { text: id.as_str(), ..New::of_pod(what) };
    plan.purge_init.iter().for_each(|id| show(of_id(What::PurgeInit, id), None));
    for k in &plan.kill {
        show(New { reason: of_kill(k.reason), text: &k.message, ..New::of(What::Kill, &k.name) }, None);
    }
    for r in &plan.reset {
        show(New { reason: Reason::RestartAll, ..New::of(What::Reset, &r.name) }, None);
    }
    plan.prune_init.iter().for_each(|id| show(of_id(What::PruneInit, id), None));
    if let Some(c) = &plan.create_sandbox {
        let number = i32::try_from(c.attempt).unwrap_or(i32::MAX);
        show(New { reason: of_sandbox(c.cause), number, ..New::of_pod(What::MakeSandbox) }, None);
    }
    plan.starts().for_each(|s| start(s, &mut show));
    for (what, list) in [(What::ResizeMemory, &plan.resize.memory), (What::ResizeCpu, &plan.resize.cpu)] {
        list.iter().for_each(|r| show(New::of(what, &r.name), None));
    }
    for wait in &plan.waits {
        let (what, name) = match wait {
            Wait::InitRunning(name) => (What::AwaitInit, name),
            Wait::SidecarStartup(name) => (What::AwaitStartup, name),
            Wait::SidecarLiveness(name) => (What::AwaitLiveness, name),
        };
        show(New::of(what, name), None);
    }
}

fn start<'a>(s: &'a ContainerStart, show: &mut impl FnMut(New<'a>, Option<Timestamp>)) {
    let what = match (&s.how, s.hold) {
        (_, Some(_)) => What::Hold,
        (How::Create { .. }, None) => What::Run,
        (How::Resume { .. }, None) => What::Resume,
    };
    let decided = because(what, &s.name, &s.cause);
    match s.hold {
        None => show(decided, None),
        Some(hold) => {
            let lasts_ms = u32::try_from(hold.delay.as_millis()).unwrap_or(u32::MAX);
            let delay = i64::try_from(hold.delay.as_nanos()).unwrap_or(i64::MAX);
            show(New { lasts_ms, ..decided }, Some(Timestamp(hold.until.0.saturating_sub(delay))));
        }
    }
}

fn because<'a>(what: What, of: &'a str, cause: &'a Cause) -> New<'a> {
    let (reason, number) = match cause {
        Cause::Absent => (Reason::Absent, 0),
        Cause::NewSandbox => (Reason::NewSandbox, 0),
        Cause::PreviousInitDone => (Reason::PreviousInitDone, 0),
        Cause::Exited { code } => (Reason::Exited, *code),
        Cause::NotStarted => (Reason::NotStarted, 0),
        Cause::Interrupted => (Reason::Interrupted, 0),
        Cause::Killed(reason) => (of_kill(*reason), 0),
        Cause::RestartAll => (Reason::RestartAll, 0),
        Cause::Sandbox(change) => (of_sandbox(*change), 0),
        Cause::InitFailed { name } => return New { reason: Reason::InitFailed, ..New::of(what, name) },
        Cause::AllDone => (Reason::AllDone, 0),
    };
    New { reason, number, ..New::of(what, of) }
}

fn of_kill(reason: KillReason) -> Reason {
    match reason {
        KillReason::Pod => Reason::KilledPod,
        KillReason::DefinitionChanged => Reason::KilledDefinition,
        KillReason::LivenessProbe => Reason::KilledLiveness,
        KillReason::StartupProbe => Reason::KilledStartup,
        KillReason::Resize => Reason::KilledResize,
        KillReason::UnknownState => Reason::KilledUnknown,
        KillReason::PostStartHook => Reason::KilledPostStart,
        KillReason::RestartAll => Reason::KilledRestartAll,
    }
}

fn of_sandbox(change: SandboxChange) -> Reason {
    match change {
        SandboxChange::Missing => Reason::SandboxMissing,
        SandboxChange::ManyReady => Reason::SandboxMany,
        SandboxChange::NotReady => Reason::SandboxNotReady,
        SandboxChange::NetworkMode => Reason::SandboxNetwork,
        SandboxChange::NoAddress => Reason::SandboxAddress,
    }
}

#[cfg(test)]
mod tests;
