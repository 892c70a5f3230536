//! How a status takes the place of an older one (pod-lifecycle 9.6): what may not change, how it is brought into form,
//! and whether it says anything new.

use model::core::{ContainerState, ContainerStatus, Pod, PodStatus};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use model::{Timestamp, pod, restart};

use crate::conditions::{is_owned_condition, is_shared_condition, transition_time};
use crate::containers::{bare_id, ended, is_running, whole_seconds};
use crate::generate::observed_generation;

#[cfg(test)]
mod tests;

/// Bytes of termination messages that one pod may have in its status, split evenly over its containers.
const MESSAGE_BYTES_PER_POD: usize = 12_288;

/// A container that had ended for good shows up again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IllegalTransition {
    /// Its name.
    pub container: String,
}

/// Refuses a status in which a container leaves the terminated state though the restart rules forbid it. Such a status
/// comes from a bug or from stale data; showing it would make controllers count a finished pod as running. What runs as another instance is no stale data.
pub fn check_transition(pod: &Pod, old: &PodStatus, new: &PodStatus) -> Result<(), IllegalTransition> {
    if pod::restart_policy(pod) == pod::RestartPolicy::Always || restart::may_restart_all(pod) {
        return Ok(());
    }
    let lists = [
        (pod::regular_containers(pod), &old.container_statuses, &new.container_statuses),
        (pod::init_containers(pod), &old.init_container_statuses, &new.init_container_statuses),
    ];
    for (containers, old, new) in lists {
        for before in old.iter().flatten() {
            let Some(end) = ended(before) else { continue };
            let container = containers.iter().find(|c| c.name == before.name);
            if container.is_some_and(|c| restart::restarts_after_exit(pod, c, end.exit_code, true)) {
                continue;
            }
            // One that the runtime lost, and that runs anew, does run.
            let runs_anew = |s: &ContainerStatus| is_running(s) && bare_id(s) != bare_id(before);
            if new.iter().flatten().any(|s| s.name == before.name && ended(s).is_none() && !runs_anew(s)) {
                return Err(IllegalTransition { container: before.name.clone() });
            }
        }
    }
    Ok(())
}

/// Brings a new status into the form in which it is kept: generation, transition times, start time (that of the old
/// status, else now), times cut to seconds, messages cut, lists sorted.
#[must_use]
pub fn settle(pod: &Pod, mut status: PodStatus, old: Option<&PodStatus>, now: Timestamp) -> PodStatus {
    let nothing = PodStatus::default();
    let old = old.unwrap_or(&nothing);
    status.observed_generation = observed_generation(pod, old).max(status.observed_generation);
    let generation = status.observed_generation;
    for condition in status.conditions.iter_mut().flatten() {
        if is_owned_condition(&condition.type_) {
            condition.observed_generation = generation;
            condition.last_transition_time = transition_time(condition, old, now.to_api());
        }
    }
    status.start_time = old.start_time.clone().or(status.start_time).or_else(|| now.to_api());
    normalise(pod, &mut status);
    status
}

fn normalise(pod: &Pod, status: &mut PodStatus) {
    cut_time(&mut status.start_time);
    for condition in status.conditions.iter_mut().flatten() {
        cut_time(&mut condition.last_probe_time);
        cut_time(&mut condition.last_transition_time);
    }
    let ephemeral = pod.spec.as_ref().and_then(|s| s.ephemeral_containers.as_ref()).map_or(0, Vec::len);
    let count = pod::regular_containers(pod).len() + pod::init_containers(pod).len() + ephemeral;
    let budget = MESSAGE_BYTES_PER_POD / count.max(1);
    let lists =
        [&mut status.init_container_statuses, &mut status.container_statuses, &mut status.ephemeral_container_statuses];
    for container in lists.into_iter().flatten().flatten() {
        for state in [&mut container.state, &mut container.last_state].into_iter().flatten() {
            normalise_state(state, budget);
        }
    }
    let order = |s: &ContainerStatus| pod::init_containers(pod).iter().position(|c| c.name == s.name);
    if let Some(list) = &mut status.init_container_statuses {
        list.sort_by_key(|s| order(s).unwrap_or(usize::MAX));
    }
    for list in [&mut status.container_statuses, &mut status.ephemeral_container_statuses].into_iter().flatten() {
        list.sort_by(|a, b| a.name.cmp(&b.name));
    }
}

fn normalise_state(state: &mut ContainerState, message_bytes: usize) {
    if let Some(running) = &mut state.running {
        cut_time(&mut running.started_at);
    }
    if let Some(end) = &mut state.terminated {
        cut_time(&mut end.started_at);
        cut_time(&mut end.finished_at);
        if let Some(message) = &mut end.message {
            // At a character boundary: a kubelet may split one.
            message.truncate(message.floor_char_boundary(message_bytes));
        }
    }
}

fn cut_time(time: &mut Option<Time>) {
    if let Some(t) = time {
        *t = whole_seconds(Timestamp::from_api(t));
    }
}

/// Whether both say the same as far as this node has a say: foreign conditions, claim statuses, probe and transition
/// times do not count.
#[must_use]
pub fn same_for_node(a: &PodStatus, b: &PodStatus) -> bool {
    macro_rules! same {
        ($($field:ident)*) => {{
            // No field is forgotten.
            let PodStatus { conditions: _, resource_claim_statuses: _, extended_resource_claim_status: _, $($field),* } = a;
            true $(&& *$field == b.$field)*
        }};
    }
    let fields = same!(allocated_resources container_statuses ephemeral_container_statuses host_ip host_ips
        init_container_statuses message node_allocatable_resource_claim_statuses nominated_node_name observed_generation phase
        pod_ip pod_ips qos_class reason resize resources start_time);
    fields && own_conditions(a) == own_conditions(b)
}

/// Conditions in which the node has a say, without their times, in the order of their types.
fn own_conditions(status: &PodStatus) -> Vec<impl PartialEq> {
    let own = status.conditions.iter().flatten();
    let own = own.filter(|c| is_owned_condition(&c.type_) || is_shared_condition(&c.type_));
    let mut own: Vec<_> = own.map(|c| (&c.type_, &c.status, &c.reason, &c.message, c.observed_generation)).collect();
    own.sort_by_key(|(type_, ..)| *type_);
    own
}
