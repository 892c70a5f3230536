//! What of a kept status goes to the API now (9.8, the pure part).

use model::Timestamp;
use model::core::{PodCondition, PodStatus};
use model::pod::is_terminal_phase;

use crate::conditions::{find, is_owned_condition, put, terminal, transition_time};
use crate::reasons::condition as ty;

#[cfg(test)]
mod tests;

/// Merges the kept status over the API's: foreign conditions and claim statuses stay the API's; a terminal phase, and
/// the DisruptionTarget that explains it, wait until no container can be running.
#[must_use]
pub fn for_api(api: &PodStatus, kept: &PodStatus, may_have_running: bool, now: Timestamp) -> PodStatus {
    let mut merged = kept.clone();
    let ends = !is_terminal_phase(api.phase.as_deref()) && is_terminal_phase(kept.phase.as_deref());
    let foreign = |c: &&PodCondition| !is_owned_condition(&c.type_);
    let foreign: Vec<_> = api.conditions.iter().flatten().filter(foreign).cloned().collect();
    merged.conditions = (!foreign.is_empty()).then_some(foreign);
    for condition in kept.conditions.iter().flatten() {
        let target = condition.type_ == ty::DISRUPTION_TARGET && ends && !may_have_running;
        if is_owned_condition(&condition.type_) || target {
            put(&mut merged, condition.clone());
        }
    }
    merged.resource_claim_statuses.clone_from(&api.resource_claim_statuses);
    merged.extended_resource_claim_status.clone_from(&api.extended_resource_claim_status);
    merged.nominated_node_name.clone_from(&api.nominated_node_name);
    if ends && may_have_running {
        merged.phase.clone_from(&api.phase);
        merged.reason.clone_from(&api.reason);
        merged.message.clone_from(&api.message);
    }
    // A terminal pod must never look ready; one that says unready for its own reason keeps that (recorded behaviour).
    let is_true = |type_: &str| find(&merged, type_).is_some_and(|c| c.status == "True");
    let looks_ready = is_true(ty::READY) || is_true(ty::CONTAINERS_READY);
    if let Some(phase) = merged.phase.clone().filter(|p| looks_ready && is_terminal_phase(Some(p))) {
        for type_ in [ty::READY, ty::CONTAINERS_READY] {
            let mut condition = terminal(type_, &phase);
            condition.observed_generation = merged.observed_generation;
            condition.last_transition_time = transition_time(&condition, &merged, now.to_api());
            put(&mut merged, condition);
        }
    }
    merged
}
