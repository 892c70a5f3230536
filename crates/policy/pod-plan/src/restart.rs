//! Whether a container may run again (pod-lifecycle 4.3, 4.5; KEP-5307 for rules per container).

use model::core::{Container, Pod};
use model::pod::{self, RestartPolicy};
use model::restart::{RuleAction, matching_rule};
use model::runtime::{ContainerObservation, ContainerState};

use crate::input::Gates;

/// What the rules say of an exit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Leave it.
    Stay,
    /// Run it again.
    Restart,
    /// Run all containers of the pod again.
    RestartAll,
}

/// Restart policy in force for a container: its own when set, else the pod's.
#[must_use]
pub fn effective_policy(pod: &Pod, container: &Container) -> RestartPolicy {
    match container.restart_policy.as_deref() {
        own @ Some(_) => RestartPolicy::parse(own),
        None => pod::restart_policy(pod),
    }
}

/// Judges an exit code. Rules count only beside a container-level policy; the first that matches wins.
#[must_use]
pub fn verdict(pod: &Pod, container: &Container, code: i32, gates: Gates) -> Verdict {
    match matching_rule(container, code) {
        Some(RuleAction::Restart) => return Verdict::Restart,
        Some(RuleAction::RestartAllContainers) if gates.restart_all_containers => return Verdict::RestartAll,
        Some(RuleAction::RestartAllContainers) | None => {}
    }
    let again = match effective_policy(pod, container) {
        RestartPolicy::Always => true,
        RestartPolicy::OnFailure => code != 0,
        RestartPolicy::Never => false,
    };
    if again { Verdict::Restart } else { Verdict::Stay }
}

/// Whether an exit with this code leads to another run.
#[must_use]
pub fn exit_restarts(pod: &Pod, container: &Container, code: i32, gates: Gates) -> bool {
    verdict(pod, container, code, gates) != Verdict::Stay
}

/// A kubelet's `ShouldContainerBeRestarted` for a regular container, given its newest instance.
#[must_use]
pub fn should_be_restarted(
    pod: &Pod,
    container: &Container,
    newest: Option<&ContainerObservation>,
    gates: Gates,
) -> bool {
    if pod.metadata.deletion_timestamp.is_some() {
        return false;
    }
    let Some(newest) = newest else { return true };
    match newest.state {
        ContainerState::Running => false,
        ContainerState::Unknown | ContainerState::Created => true,
        ContainerState::Exited => exit_restarts(pod, container, newest.exit_code, gates),
    }
}

/// An init container that counts as failed: a non-zero code, an OOM kill whatever its code, or a state nobody knows.
#[must_use]
pub fn init_failed(newest: &ContainerObservation) -> bool {
    match newest.state {
        ContainerState::Exited => newest.exit_code != 0 || newest.reason == "OOMKilled",
        ContainerState::Unknown => true,
        ContainerState::Created | ContainerState::Running => false,
    }
}

/// Whether an init container that [`init_failed`] may run again.
///
/// COMPAT(kubelet): an OOM kill reported with code 0 is judged here as code 137, so that `OnFailure` runs it again; a
/// kubelet would judge the 0 and give the pod up.
#[must_use]
pub fn failed_init_restarts(pod: &Pod, container: &Container, newest: &ContainerObservation, gates: Gates) -> bool {
    let code = if newest.exit_code == 0 && newest.reason == "OOMKilled" { 137 } else { newest.exit_code };
    pod.metadata.deletion_timestamp.is_none() && exit_restarts(pod, container, code, gates)
}
