//! The pipeline of 9.1.

use std::time::Duration;

use model::core::{Pod, PodStatus};
use model::{Timestamp, pod, resources as pod_resources};

use crate::containers::container_statuses;
use crate::input::StatusInput;
use crate::reasons::{self, pod_phase};
use crate::{conditions, ips, phase, probes, resources};

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod prop_tests;
#[cfg(test)]
mod tests;

/// The status of a pod from its specification, what is observed, and its status so far.
///
/// Feeding the result back as `base` with the same input gives the same result. A terminal phase is never left.
#[must_use]
pub fn generate(input: &StatusInput<'_>) -> PodStatus {
    let nothing = PodStatus::default();
    let api = input.pod.status.as_ref().unwrap_or(&nothing);
    let base = input.base.unwrap_or(api);

    let lists = container_statuses(input, base);
    let some = |list: Vec<_>| (!list.is_empty()).then_some(list);
    let mut status = PodStatus {
        qos_class: Some(pod_resources::qos_class(input.pod).as_str().to_owned()),
        observed_generation: observed_generation(input.pod, base),
        // Unknown on the very first status: the store fills it in, or a worker that remembers it.
        start_time: base.start_time.clone().or_else(|| api.start_time.clone()),
        init_container_statuses: some(lists.init),
        container_statuses: some(lists.regular),
        ephemeral_container_statuses: some(lists.ephemeral),
        ..PodStatus::default()
    };
    ips::apply(input, base, &mut status);
    decide_phase(input, base, api, &mut status);
    probes::apply(input, base, &mut status);
    conditions::apply(input, base, &mut status);
    let figures =
        resources::of_pod(input.pod, &input.resize.actuated, status.phase.as_deref() != Some(pod_phase::PENDING));
    status.resources = Some(figures.in_force);
    status.allocated_resources = figures.allocated;
    status
}

/// Phase with its reason and message: 9.3, stickiness 9.4, active deadline.
fn decide_phase(input: &StatusInput<'_>, base: &PodStatus, api: &PodStatus, status: &mut PodStatus) {
    let statuses = conditions::all_statuses(status);
    let current = input.observed.active_containers();
    let regular = pod::regular_containers(input.pod);
    let has_current = current.into_iter().any(|o| regular.iter().any(|c| c.name == o.name));
    let computed = phase::phase(input.pod, &statuses, input.restart_all, input.is_terminal, has_current);

    let terminal_before = [api, base].into_iter().find_map(terminal_phase);
    let phase = terminal_before.unwrap_or(computed);
    for known in [base, api] {
        if known.phase.as_deref() == Some(phase) {
            status.reason = status.reason.take().or_else(|| known.reason.clone());
            status.message = status.message.take().or_else(|| known.message.clone());
        }
    }
    status.phase = Some(phase.to_owned());
    let overdue = active_deadline_left(input.pod, base, input.now).is_some_and(|left| left.is_zero());
    if terminal_before.is_none() && overdue {
        status.phase = Some(pod_phase::FAILED.to_owned());
        status.reason = Some(reasons::DEADLINE_EXCEEDED.to_owned());
        status.message = Some(reasons::DEADLINE_MESSAGE.to_owned());
    }
}

fn terminal_phase(status: &PodStatus) -> Option<&str> {
    status.phase.as_deref().filter(|p| pod::is_terminal_phase(Some(p)))
}

/// Time until the pod is past its `activeDeadlineSeconds`, zero when it is; `None` without a deadline or before the pod
/// has a start time. A worker looks again then.
#[must_use]
pub fn active_deadline_left(pod: &Pod, status: &PodStatus, now: Timestamp) -> Option<Duration> {
    let seconds = pod.spec.as_ref()?.active_deadline_seconds?;
    let started = status.start_time.as_ref().or_else(|| pod.status.as_ref()?.start_time.as_ref())?;
    let end = Timestamp::from_api(started).0.saturating_add(seconds.saturating_mul(1_000_000_000));
    Some(Duration::from_nanos(u64::try_from(end.saturating_sub(now.0)).unwrap_or(0)))
}

/// The generation that this status is about; never goes back. Static pods have none.
pub(crate) fn observed_generation(pod: &Pod, base: &PodStatus) -> Option<i64> {
    base.observed_generation.max(pod.metadata.generation)
}
