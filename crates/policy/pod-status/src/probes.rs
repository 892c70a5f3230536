//! Probe verdicts in container statuses (pod-lifecycle 8.4), kept over a restart of the daemon (pod-lifecycle 8.5).

use model::ContainerId;
use model::core::{ContainerStatus, PodStatus};
use model::probe::ProbeVerdict;

use crate::containers::{bare_id, ended, is_plain_init, is_running};
use crate::input::{ProbeFacts, StatusInput};

#[cfg(test)]
mod tests;

/// Writes `started` and `ready` of init and regular containers.
pub(crate) fn apply(input: &StatusInput<'_>, base: &PodStatus, status: &mut PodStatus) {
    let before = all(base);
    for list in [&mut status.init_container_statuses, &mut status.container_statuses] {
        for container in list.iter_mut().flatten() {
            let old = before.iter().find(|o| o.name == container.name && same_instance(o, container)).copied();
            let started = is_started(input.probes, container, old);
            container.started = Some(started);
            if is_plain_init(input.pod, &container.name) {
                container.ready |= ended(container).is_some_and(|e| e.exit_code == 0);
            } else if started {
                container.ready = is_ready(input.probes, container, old);
            }
        }
    }
}

fn is_started(probes: &ProbeFacts, container: &ContainerStatus, old: Option<&ContainerStatus>) -> bool {
    if !is_running(container) {
        return false;
    }
    match probes.verdicts(bare_id(container)).startup {
        Some(verdict) => verdict == ProbeVerdict::Success,
        // A container that had started before this daemon did stays so (since 1.35).
        None if old.is_some_and(|o| o.started == Some(true)) => true,
        None => !probes.startup_probes.contains(&container.name),
    }
}

fn is_ready(probes: &ProbeFacts, container: &ContainerStatus, old: Option<&ContainerStatus>) -> bool {
    match probes.verdicts(bare_id(container)).readiness {
        Some(ProbeVerdict::Success) => true,
        // No verdict yet on an instance that was ready: the daemon restarted, do not flap (since 1.35).
        None if old.is_some_and(|o| o.ready) => true,
        _ => !probes.readiness_probes.contains(&container.name),
    }
}

fn same_instance(a: &ContainerStatus, b: &ContainerStatus) -> bool {
    !bare_id(a).is_empty() && bare_id(a) == bare_id(b)
}

fn all(status: &PodStatus) -> Vec<&ContainerStatus> {
    let lists = [&status.init_container_statuses, &status.container_statuses];
    lists.into_iter().flatten().flatten().collect()
}

/// Containers that have started, have a readiness probe and no success from it yet: probing them at once, out of their
/// period, makes a fresh pod ready sooner (pod-lifecycle 8.4).
#[must_use]
pub fn readiness_to_trigger(status: &PodStatus, probes: &ProbeFacts) -> Vec<(String, ContainerId)> {
    let waits = |c: &&ContainerStatus| {
        c.started == Some(true)
            && probes.readiness_probes.contains(&c.name)
            && probes.verdicts(bare_id(c)).readiness != Some(ProbeVerdict::Success)
    };
    all(status).into_iter().filter(waits).map(|c| (c.name.clone(), ContainerId::from(bare_id(c)))).collect()
}
