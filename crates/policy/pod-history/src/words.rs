//! Entries as sentences. Those of decisions are the words of the plan itself (`pod_plan::PodPlan::explain`); a test of pod-worker
//! compares them.

use std::borrow::Cow;
use std::time::Duration;

use model::go_duration;
use model::history::{End, PodHistory, Reason, Transition, What};

/// An entry as a short sentence, without its times.
#[must_use]
pub fn sentence(history: &PodHistory, t: &Transition) -> String {
    let name = history.name(t);
    let said = if t.what.is_decision() { decision(t, name) } else { happening(t, name) };
    match (&t.text, t.end) {
        (Some(text), End::Failed) => format!("{said} failed: {text}"),
        (None, End::Failed) => format!("{said} failed"),
        (_, End::Lost) => format!("{said}: interrupted"),
        (_, End::Open) => format!("{said}: under way"),
        (Some(text), _) if !t.what.is_decision() => format!("{said}: {text}"),
        _ => said,
    }
}

fn decision(t: &Transition, name: &str) -> String {
    let why = reason(t, name);
    match t.what {
        What::KillPod => format!("kill the pod: {why}"),
        What::PurgeInit => format!("purge init container {}", said_id(t)),
        What::PruneInit => format!("prune init container {}", said_id(t)),
        // The kubelet's own words for the event.
        What::Kill => format!("kill {name}: {}", t.text.as_deref().unwrap_or_default()),
        What::Reset => format!("reset {name}: {why}"),
        What::MakeSandbox => format!("create sandbox attempt {}: {why}", t.number),
        What::Run => format!("start {name}: {why}"),
        What::Resume => format!("resume {name}: {why}"),
        What::Hold => {
            format!("hold {name} for {}: {why}", go_duration::format(Duration::from_millis(t.took_ms.into())))
        }
        What::ResizeMemory => format!("resize memory of {name}"),
        What::ResizeCpu => format!("resize cpu of {name}"),
        What::AwaitInit => format!("wait for init container {name} to finish"),
        What::AwaitStartup => format!("wait for sidecar {name} to pass its startup probe"),
        What::AwaitLiveness => format!("wait for the first liveness result of sidecar {name}"),
        _ => "a decision that this version does not know".to_owned(),
    }
}

fn said_id(t: &Transition) -> &str {
    t.text.as_deref().unwrap_or("that was there before")
}

fn reason(t: &Transition, name: &str) -> Cow<'static, str> {
    Cow::Borrowed(match t.reason {
        Reason::None | Reason::Unknown => "",
        Reason::Absent => "no instance exists",
        Reason::NewSandbox => "new sandbox",
        Reason::PreviousInitDone => "the init container before it is done",
        Reason::Exited => return Cow::Owned(format!("exited with code {}", t.number)),
        Reason::NotStarted => "created but never running",
        Reason::Interrupted => "its start was interrupted",
        Reason::RestartAll => "a restart rule asks to restart all containers",
        Reason::InitFailed => return Cow::Owned(format!("init container {name} failed and may not run again")),
        Reason::AllDone => "no regular container runs or may start",
        Reason::KilledPod => "stopped for the pod's end",
        Reason::KilledDefinition => "stopped for a changed definition",
        Reason::KilledLiveness => "stopped for a failed liveness probe",
        Reason::KilledStartup => "stopped for a failed startup probe",
        Reason::KilledResize => "stopped for a resize",
        Reason::KilledUnknown => "stopped for an unknown state",
        Reason::KilledPostStart => "stopped for a failed postStart hook",
        Reason::KilledRestartAll => "stopped for a restart of all containers",
        Reason::SandboxMissing => "no sandbox exists",
        Reason::SandboxMany => "more than one sandbox is ready",
        Reason::SandboxNotReady => "the newest sandbox is not ready",
        Reason::SandboxNetwork => "the sandbox has another network mode",
        Reason::SandboxAddress => "the sandbox has no address",
        Reason::Deleted => "it was deleted, or is gone from its source",
        Reason::Killed => "it has to go",
        Reason::RanToEnd => "it has run to its end",
    })
}

fn happening(t: &Transition, name: &str) -> String {
    match t.what {
        What::Taken => "the node takes the pod on".to_owned(),
        What::Resumed => "the daemon goes on with the pod".to_owned(),
        What::Turn => "waits for another pod of its name to end".to_owned(),
        What::Look => "the runtime tells what it has".to_owned(),
        What::Cgroup => "its cgroup".to_owned(),
        What::Volumes => "its volumes".to_owned(),
        What::Network => "the pod network".to_owned(),
        What::Sandbox => "sandbox".to_owned(),
        What::Pull => format!("image of {name}"),
        What::Create => format!("create {name}"),
        What::Start => format!("start {name}"),
        What::PostStart => format!("postStart hook of {name}"),
        What::Stop => "stop what runs".to_owned(),
        What::CleanUp => "give back volumes and cgroup".to_owned(),
        What::Step => "a step".to_owned(),
        What::Exited => format!("{name} exited with code {}", t.number),
        What::Ready => "ready".to_owned(),
        What::NotReady => "not ready".to_owned(),
        What::EndAsked => format!("its end is asked for: {}", reason(t, name)),
        What::Finished => "nothing is left to do".to_owned(),
        _ => "something that this version does not know".to_owned(),
    }
}
