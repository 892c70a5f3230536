//! Statuses that are made without looking at the runtime: a pod that was refused, ended by the node, or is gone.

use std::collections::BTreeMap;

use model::core::{ContainerStatus, Pod, PodStatus};
use model::{Timestamp, pod, resources};

use crate::conditions::{put, transition_time, verdict};
use crate::containers::{ended, is_waiting, last_end, terminated_unseen};
use crate::reasons::{self, condition as ty, pod_phase};

#[cfg(test)]
mod tests;

/// Status of a pod that admission refused (pod-lifecycle 1.10). Start time and generation are added by
/// [`crate::store::settle`].
#[must_use]
pub fn rejected(pod: &Pod, reason: &str, message: &str) -> PodStatus {
    PodStatus {
        phase: Some(pod_phase::FAILED.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(rejection_message(message)),
        qos_class: Some(resources::qos_class(pod).as_str().to_owned()),
        ..PodStatus::default()
    }
}

/// How a status says why admission refused a pod.
#[must_use]
pub fn rejection_message(why: &str) -> String {
    format!("Pod was rejected: {why}")
}

/// Restart counts do not go below those that were told before, by name of the container.
pub fn keep_counts(status: &mut PodStatus, told: &BTreeMap<String, i32>) {
    for c in [&mut status.init_container_statuses, &mut status.container_statuses].into_iter().flatten().flatten() {
        c.restart_count = c.restart_count.max(told.get(&c.name).copied().unwrap_or(0));
    }
}

/// Restart counts of a status, without those that are 0.
#[must_use]
pub fn counts(status: &PodStatus) -> BTreeMap<String, i32> {
    let all = [&status.init_container_statuses, &status.container_statuses].into_iter().flatten().flatten();
    all.filter(|c| c.restart_count > 0).map(|c| (c.name.clone(), c.restart_count)).collect()
}

/// Why the node ends a pod before its time (pod-lifecycle 2.10).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Disruption {
    /// Node pressure; the text says which resource.
    Evicted(String),
    /// The pod itself used too much local storage: as evicted, without the DisruptionTarget condition.
    OverLocalStorage(String),
    /// A critical pod needs its place.
    Preempted,
    /// The node shuts down.
    NodeShutdown,
}

/// Marks a status as ended by the node.
pub fn disrupt(status: &mut PodStatus, why: &Disruption, now: Timestamp) {
    let (reason, message, condition) = match why {
        Disruption::Evicted(text) => ("Evicted", text.as_str(), Some(text.as_str())),
        Disruption::OverLocalStorage(text) => ("Evicted", text.as_str(), None),
        Disruption::Preempted => (
            "Preempting",
            "Preempted in order to admit critical pod",
            Some("Pod was preempted by Kubelet to accommodate a critical pod."),
        ),
        Disruption::NodeShutdown => {
            let text = "Pod was terminated in response to imminent node shutdown.";
            ("Terminated", text, Some(text))
        }
    };
    if *why == Disruption::NodeShutdown && status.phase.as_deref() == Some(pod_phase::SUCCEEDED) {
        return;
    }
    status.phase = Some(pod_phase::FAILED.to_owned());
    status.reason = Some(reason.to_owned());
    status.message = Some(message.to_owned());
    if let Some(text) = condition {
        let mut target = verdict(ty::DISRUPTION_TARGET, true, "TerminationByKubelet", text);
        target.observed_generation = status.observed_generation;
        target.last_transition_time = transition_time(&target, status, now.to_api());
        put(status, target);
    }
}

/// Says at once that the sandbox is up, without waiting for the next observation (KEP-3085, 1.36).
#[must_use]
pub fn sandbox_ready(status: &PodStatus, now: Timestamp) -> PodStatus {
    let mut status = status.clone();
    let mut ready = verdict(ty::READY_TO_START, true, "", "");
    ready.observed_generation = status.observed_generation;
    ready.last_transition_time = transition_time(&ready, &status, now.to_api());
    put(&mut status, ready);
    status
}

/// The last word on a pod that is torn down (pod-lifecycle 9.9): whatever did not end visibly counts as failed.
#[must_use]
pub fn terminated(pod: &Pod, status: &PodStatus) -> PodStatus {
    let mut status = status.clone();
    let init_began = began(status.init_container_statuses.as_deref().unwrap_or_default());
    if has_initialised(pod, &status) {
        status.container_statuses.iter_mut().flatten().for_each(close);
    }
    status.init_container_statuses.iter_mut().flatten().take(init_began).for_each(close);
    if !pod::is_static(pod) && !pod::is_terminal_phase(status.phase.as_deref()) {
        status.phase = Some(pod_phase::FAILED.to_owned());
    }
    status
}

fn close(container: &mut ContainerStatus) {
    if ended(container).is_none() {
        container.state = Some(terminated_unseen(
            reasons::CONTAINER_STATUS_UNKNOWN,
            reasons::GONE_WHEN_TERMINATED,
            reasons::UNKNOWN_EXIT_CODE,
        ));
    }
}

fn has_initialised(pod: &Pod, status: &PodStatus) -> bool {
    let Some(last) = pod::init_containers(pod).last() else { return true };
    let mut regular = status.container_statuses.iter().flatten();
    if regular.any(|c| last_end(c).is_some() || !is_waiting(c)) {
        return true;
    }
    let Some(last_status) = status.init_container_statuses.iter().flatten().last() else { return false };
    if pod::is_sidecar(last) {
        return last_status.started == Some(true);
    }
    [last_end(last_status), ended(last_status)].into_iter().flatten().any(|end| end.exit_code == 0)
}

/// How many init containers, from the first, count as begun: up to the last that shows any activity, at least one.
fn began(inits: &[ContainerStatus]) -> usize {
    let active = inits.iter().rposition(|c| !is_waiting(c) || last_end(c).is_some());
    active.map_or(1, |last| last + 1)
}
