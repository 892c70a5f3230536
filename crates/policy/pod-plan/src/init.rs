//! Init containers and sidecars (pod-lifecycle 4.4), walked from the last to the first.

use model::core::Container;
use model::pod::{self, ContainerKind};
use model::probe::ProbeVerdict;
use model::runtime::{ContainerObservation, ContainerState};

use crate::action::{Cause, ContainerKill, KillReason, Wait};
use crate::hash::definition_changed;
use crate::input::PlanInput;
use crate::resize::Resize;
use crate::restart::{failed_init_restarts, init_failed};

/// What the walk found.
#[derive(Debug, Default)]
pub(crate) struct InitPlan {
    /// Indices to start, in spec order.
    pub(crate) start: Vec<(usize, Cause)>,
    /// Containers to stop, in spec order.
    pub(crate) kill: Vec<ContainerKill>,
    /// The pod is to be killed: this init container failed for good.
    pub(crate) failed: Option<String>,
    /// Regular containers may be considered.
    pub(crate) initialised: bool,
    /// What running ones are to be told.
    pub(crate) resize: Resize,
    /// What is waited for.
    pub(crate) waits: Vec<Wait>,
}

impl InitPlan {
    fn kill_and_start(&mut self, at: Step<'_>, instance: &ContainerObservation, reason: KillReason, message: String) {
        self.kill.push(ContainerKill {
            id: instance.id.clone(),
            name: at.container.name.clone(),
            kind: if at.sidecar { ContainerKind::Sidecar } else { ContainerKind::Init },
            message,
            reason,
            restart: true,
        });
        self.start.push((at.index, Cause::Killed(reason)));
    }

    /// The container at this index is done: it was the last one, or the next one may start (unless it has before).
    fn done(&mut self, at: Step<'_>) {
        if at.last {
            self.initialised = true;
        } else if !at.previously {
            self.start.push((at.index + 1, Cause::PreviousInitDone));
        }
    }
}

#[derive(Clone, Copy)]
struct Step<'a> {
    container: &'a Container,
    index: usize,
    sidecar: bool,
    last: bool,
    /// This container has been initialised before: a later one, or a regular one, is known to have run.
    previously: bool,
}

/// Whether a regular container of the sandbox in use is created or running. Exited ones and those of older sandboxes do
/// not count: after a reboot initialisation must run again in the new sandbox.
fn regular_container_active(input: &PlanInput<'_>) -> bool {
    let regulars = pod::regular_containers(input.pod);
    input.observed.active_containers().any(|o| {
        matches!(o.state, ContainerState::Created | ContainerState::Running)
            && regulars.iter().any(|c| c.name == o.name)
    })
}

pub(crate) fn init_plan(input: &PlanInput<'_>) -> InitPlan {
    let containers = pod::init_containers(input.pod);
    if containers.is_empty() {
        return InitPlan { initialised: true, ..InitPlan::default() };
    }
    let mut previously = regular_container_active(input);
    let mut out = InitPlan { initialised: previously, ..InitPlan::default() };
    for (index, container) in containers.iter().enumerate().rev() {
        let sidecar = pod::is_sidecar(container);
        let at = Step { container, index, sidecar, last: index + 1 == containers.len(), previously };
        let Some(instance) = input.observed.container(&container.name) else {
            if previously && sidecar {
                out.start.push((index, Cause::Absent));
            }
            continue;
        };
        if previously && !sidecar {
            continue;
        }
        if sidecar {
            judge_sidecar(input, at, instance, &mut out);
        } else {
            judge_init(input, at, instance, &mut out);
        }
        if out.failed.is_some() {
            out.start.clear();
            return out;
        }
        previously = true;
    }
    if !previously {
        out.start.push((0, Cause::Absent));
    }
    out.start.reverse();
    out.kill.reverse();
    out.waits.reverse();
    out
}

fn judge_init(input: &PlanInput<'_>, at: Step<'_>, instance: &ContainerObservation, out: &mut InitPlan) {
    match instance.state {
        ContainerState::Created => out.start.push((at.index, Cause::NotStarted)),
        ContainerState::Running => {
            if input.gates.resizable.init_containers {
                // The API lets none of them have a policy that starts it anew.
                out.resize.judge(input, at.container, instance);
            }
            out.waits.push(Wait::InitRunning(at.container.name.clone()));
        }
        ContainerState::Exited if !init_failed(instance) => out.done(at),
        ContainerState::Exited => {
            if failed_init_restarts(input.pod, at.container, instance, input.gates) {
                out.start.push((at.index, Cause::Exited { code: instance.exit_code }));
            } else {
                out.failed = Some(at.container.name.clone());
            }
        }
        ContainerState::Unknown => {
            if crate::restart::effective_policy(input.pod, at.container) == pod::RestartPolicy::Never {
                out.failed = Some(at.container.name.clone());
            } else {
                out.kill_and_start(at, instance, KillReason::UnknownState, unknown_message());
            }
        }
    }
}

fn judge_sidecar(input: &PlanInput<'_>, at: Step<'_>, instance: &ContainerObservation, out: &mut InitPlan) {
    match instance.state {
        ContainerState::Created => out.start.push((at.index, Cause::NotStarted)),
        ContainerState::Exited => out.start.push((at.index, Cause::Exited { code: instance.exit_code })),
        ContainerState::Unknown => out.kill_and_start(at, instance, KillReason::UnknownState, unknown_message()),
        ContainerState::Running => judge_running_sidecar(input, at, instance, out),
    }
}

fn judge_running_sidecar(input: &PlanInput<'_>, at: Step<'_>, instance: &ContainerObservation, out: &mut InitPlan) {
    let name = &at.container.name;
    if at.container.startup_probe.is_some() {
        match input.probes.startup.get(&instance.id) {
            Some(ProbeVerdict::Success) => {}
            Some(ProbeVerdict::Failure) => {
                let message = format!("Init container {name} failed startup probe");
                out.kill_and_start(at, instance, KillReason::StartupProbe, message);
                return;
            }
            Some(ProbeVerdict::Unknown) | None => {
                out.waits.push(Wait::SidecarStartup(name.clone()));
                return;
            }
        }
    }
    out.done(at);
    if definition_changed(at.container, instance) {
        let message = format!("Init container {name} definition changed");
        out.kill_and_start(at, instance, KillReason::DefinitionChanged, message);
        return;
    }
    if at.container.liveness_probe.is_some() {
        match input.probes.liveness.get(&instance.id) {
            None => {
                out.waits.push(Wait::SidecarLiveness(name.clone()));
                return;
            }
            Some(ProbeVerdict::Failure) => {
                let message = format!("Init container {name} failed liveness probe");
                out.kill_and_start(at, instance, KillReason::LivenessProbe, message);
                return;
            }
            Some(ProbeVerdict::Success | ProbeVerdict::Unknown) => {}
        }
    }
    if out.resize.judge(input, at.container, instance) {
        out.kill_and_start(at, instance, KillReason::Resize, format!("Init container {name} resize requires restart"));
    }
}

fn unknown_message() -> String {
    "Init container is in \"unknown\" state, try killing it before restart".to_owned()
}
