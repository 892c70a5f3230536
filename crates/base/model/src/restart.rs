//! Restart rules: would a container that is not running be started again (pod-lifecycle 4.3, 4.5)?
//!
//! Shared by the plan of a pod and by its status, which must agree.

use crate::core::{Container, ContainerRestartRule, Pod};
use crate::pod;
use crate::runtime::{ContainerState, PodObservation};

#[cfg(test)]
mod tests;

/// What a restart rule of a container asks for (KEP-5307, KEP-5532).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleAction {
    /// Restart this container.
    Restart,
    /// Restart every container of the pod, init containers included.
    RestartAllContainers,
}

/// The action of the first rule that matches the exit code. Rules count only beside a container-level restart policy;
/// an action that this node does not know is passed over.
#[must_use]
pub fn matching_rule(container: &Container, exit_code: i32) -> Option<RuleAction> {
    container.restart_policy.as_ref()?;
    let rules = container.restart_policy_rules.as_deref().unwrap_or_default();
    rules.iter().filter(|rule| rule_matches(rule, exit_code)).find_map(|rule| match rule.action.as_str() {
        "Restart" => Some(RuleAction::Restart),
        "RestartAllContainers" => Some(RuleAction::RestartAllContainers),
        _ => None,
    })
}

fn rule_matches(rule: &ContainerRestartRule, exit_code: i32) -> bool {
    let Some(codes) = &rule.exit_codes else { return false };
    let listed = codes.values.as_deref().unwrap_or_default().contains(&exit_code);
    match codes.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    }
}

/// Whether a container that exited with this code is to run again (pod-lifecycle 4.5). Whether an init container *has*
/// to run again after success is not asked here. `restart_all`: the gate RestartAllContainersOnContainerExits; without it
/// such a rule is passed over.
#[must_use]
pub fn restarts_after_exit(pod: &Pod, container: &Container, exit_code: i32, restart_all: bool) -> bool {
    let policy = match container.restart_policy.as_deref() {
        Some(own) => {
            match matching_rule(container, exit_code) {
                Some(RuleAction::Restart) => return true,
                Some(RuleAction::RestartAllContainers) if restart_all => return true,
                Some(RuleAction::RestartAllContainers) | None => {}
            }
            own
        }
        None => pod.spec.as_ref().and_then(|s| s.restart_policy.as_deref()).unwrap_or("Always"),
    };
    match policy {
        "OnFailure" => exit_code != 0,
        "Never" => false,
        _ => true,
    }
}

/// Whether the next sync would start the container (`ShouldContainerBeRestarted`): never in a pod that is being
/// deleted; a container without a trace, created or in an unknown state yes; a running one no; an exited one by
/// [`restarts_after_exit`].
#[must_use]
pub fn should_restart(pod: &Pod, container: &Container, observed: &PodObservation, restart_all: bool) -> bool {
    if pod.metadata.deletion_timestamp.is_some() {
        return false;
    }
    let Some(latest) = observed.container(&container.name) else { return true };
    match latest.state {
        ContainerState::Running => false,
        ContainerState::Created | ContainerState::Unknown => true,
        ContainerState::Exited => restarts_after_exit(pod, container, latest.exit_code, restart_all),
    }
}

/// Whether any container of the pod carries a `RestartAllContainers` rule.
#[must_use]
pub fn may_restart_all(pod: &Pod) -> bool {
    pod::init_containers(pod).iter().chain(pod::regular_containers(pod)).any(|c| {
        let rules = c.restart_policy_rules.as_deref().unwrap_or_default();
        rules.iter().any(|r| r.action == "RestartAllContainers")
    })
}

/// Whether this exit asks for a restart of every container of the pod.
#[must_use]
pub fn asks_for_all(container: &Container, exit_code: i32) -> bool {
    matching_rule(container, exit_code) == Some(RuleAction::RestartAllContainers)
}
