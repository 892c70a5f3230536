//! What of a kept status goes to the API now (9.8, the pure part).

use std::collections::BTreeMap;

use model::Timestamp;
use model::core::{PodCondition, PodStatus};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use model::pod::is_terminal_phase;

use crate::conditions::{find, is_owned_condition, put, terminal, transition_time};
use crate::reasons::condition as ty;

#[cfg(test)]
mod tests;

/// Merges the kept status over the API's: foreign conditions and claim statuses stay the API's; a terminal phase, and
/// the DisruptionTarget that explains it, wait until no container can be running.
#[must_use]
pub fn for_api(api: &PodStatus, kept: PodStatus, may_have_running: bool, now: Timestamp) -> PodStatus {
    let mut merged = kept;
    let ends = !is_terminal_phase(api.phase.as_deref()) && is_terminal_phase(merged.phase.as_deref());
    let kept = merged.conditions.take();
    let foreign = |c: &&PodCondition| !is_owned_condition(&c.type_);
    let foreign: Vec<_> = api.conditions.iter().flatten().filter(foreign).cloned().collect();
    merged.conditions = (!foreign.is_empty()).then_some(foreign);
    for condition in kept.into_iter().flatten() {
        let target = condition.type_ == ty::DISRUPTION_TARGET && ends && !may_have_running;
        if is_owned_condition(&condition.type_) || target {
            put(&mut merged, condition);
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

/// Times that the API knew before this daemon did. After a restart of the daemon alone a verdict that still holds is no
/// new verdict, and a pod that runs did not start now: such times stay the API's, and nothing is written for their sake.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KnownTimes {
    /// By condition type (empty: the start of the pod), this daemon's time and the API's.
    times: BTreeMap<String, (Time, Time)>,
}

impl KnownTimes {
    /// What the API knew when the first status of this daemon's life met it.
    #[must_use]
    pub fn learn(api: &PodStatus, kept: &PodStatus) -> Self {
        let mut known = Self::default();
        known.note("", kept.start_time.as_ref(), api.start_time.as_ref());
        for ours in kept.conditions.iter().flatten().filter(|c| is_owned_condition(&c.type_)) {
            if let Some(theirs) = find(api, &ours.type_).filter(|c| c.status == ours.status) {
                known.note(&ours.type_, ours.last_transition_time.as_ref(), theirs.last_transition_time.as_ref());
            }
        }
        known
    }

    fn note(&mut self, of: &str, ours: Option<&Time>, theirs: Option<&Time>) {
        if let (Some(ours), Some(theirs)) = (ours, theirs)
            && theirs < ours
        {
            self.times.insert(of.to_owned(), (ours.clone(), theirs.clone()));
        }
    }

    /// Puts the API's times in, as long as the verdicts that they belong to have not changed.
    pub fn apply(&self, status: &mut PodStatus) {
        let put = |of: &str, time: &mut Option<Time>| {
            if let Some((_, theirs)) = self.times.get(of).filter(|(ours, _)| time.as_ref() == Some(ours)) {
                *time = Some(theirs.clone());
            }
        };
        put("", &mut status.start_time);
        for condition in status.conditions.iter_mut().flatten() {
            put(&condition.type_, &mut condition.last_transition_time);
        }
    }
}
