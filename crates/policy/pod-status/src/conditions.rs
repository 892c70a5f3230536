//! Pod conditions (pod-lifecycle 9.5).

use model::core::{Container, ContainerStatus, Pod, PodCondition, PodStatus};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use model::runtime::PodObservation;
use model::{pod, restart};

use crate::containers::{ended, is_running};
use crate::input::StatusInput;
use crate::reasons::{condition as ty, pod_phase};
use crate::restart_all::{containers, restarts_all};

#[cfg(test)]
mod tests;

/// Whether a condition of this type is this node's alone to write.
#[must_use]
pub fn is_owned_condition(type_: &str) -> bool {
    matches!(
        type_,
        ty::POD_SCHEDULED
            | ty::READY
            | ty::INITIALIZED
            | ty::CONTAINERS_READY
            | ty::RESIZE_IN_PROGRESS
            | ty::RESIZE_PENDING
            | ty::READY_TO_START
            | ty::ALL_CONTAINERS_RESTARTING
    )
}

/// Whether this node writes conditions of this type beside others.
#[must_use]
pub fn is_shared_condition(type_: &str) -> bool {
    type_ == ty::DISRUPTION_TARGET
}

/// Whether the pod has no sandbox that it could run in (pod-lifecycle 4.2).
#[must_use]
pub fn needs_new_sandbox(p: &Pod, observed: &PodObservation) -> bool {
    let Some(newest) = observed.sandbox() else { return true };
    let host_network = pod::is_host_network(p);
    let several = observed.sandboxes.iter().filter(|s| s.ready).count() > 1;
    let other_network = newest.host_network.is_some_and(|h| h != host_network);
    let no_ip = !host_network && newest.ips.as_ref().is_some_and(|ips| ips.first().is_none_or(String::is_empty));
    several || !newest.ready || other_network || no_ip
}

/// All conditions of the new status, in the order in which a kubelet writes them: foreign, shared, own.
pub(crate) fn apply(input: &StatusInput<'_>, base: &PodStatus, status: &mut PodStatus) {
    let api = input.pod.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let mut list: Vec<PodCondition> =
        api.iter().filter(|c| !is_owned_condition(&c.type_) && !is_shared_condition(&c.type_)).cloned().collect();
    if !pod::is_terminal_phase(status.phase.as_deref()) {
        list.extend(resize_conditions(input, base));
    }
    list.extend(find(base, ty::DISRUPTION_TARGET).cloned());

    let statuses = all_statuses(status);
    let phase = status.phase.as_deref().unwrap_or_default();
    let start_ready = !needs_new_sandbox(input.pod, input.observed);
    let mut own = vec![verdict(ty::READY_TO_START, start_ready, "", "")];
    // A restart in place does not take the verdict back.
    let was_initialised = input.restart_all && is_true(base, ty::INITIALIZED);
    own.push(initialized(input.pod, &statuses, phase, was_initialised));
    own.push(ready(input.pod, &statuses, phase, &list));
    own.push(containers_ready(input.pod, &statuses, phase));
    own.push(verdict(ty::POD_SCHEDULED, true, "", ""));
    if input.restart_all && restart::may_restart_all(input.pod) {
        own.push(all_restarting(input, base, phase));
    }
    for mut condition in own {
        condition.observed_generation = status.observed_generation;
        condition.last_transition_time = transition_time(&condition, base, input.now.to_api());
        list.push(condition);
    }
    status.conditions = Some(list);
}

/// How far resizes are. Unlike other conditions these change with their reason, and are of the generation that asked.
fn resize_conditions(input: &StatusInput<'_>, base: &PodStatus) -> impl Iterator<Item = PodCondition> {
    let now = input.now.to_api();
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let condition = |type_: &str, reason: &str, message: &str, generation: i64| {
        let before = find(base, type_).filter(|c| c.reason.as_deref().unwrap_or_default() == reason);
        PodCondition {
            reason: some(reason),
            message: some(message),
            observed_generation: Some(generation).filter(|g| *g > 0),
            last_transition_time: before.and_then(|c| c.last_transition_time.clone()).or_else(|| now.clone()),
            last_probe_time: before.and_then(|c| c.last_probe_time.clone()).or_else(|| now.clone()),
            ..verdict(type_, true, "", "")
        }
    };
    let pending = input.resize.pending.as_ref();
    let pending = pending.map(|p| condition(ty::RESIZE_PENDING, p.reason(), &p.message, p.generation));
    let in_progress = input.resize.in_progress.as_ref().map(|p| {
        let reason = if p.error.is_some() { "Error" } else { "" };
        condition(ty::RESIZE_IN_PROGRESS, reason, p.error.as_deref().unwrap_or_default(), p.generation)
    });
    pending.into_iter().chain(in_progress)
}

/// Init statuses, then regular ones.
pub(crate) fn all_statuses(status: &PodStatus) -> Vec<&ContainerStatus> {
    status.init_container_statuses.iter().chain(&status.container_statuses).flatten().collect()
}

/// The time of the last change of a condition's verdict: kept while it says the same as before.
pub(crate) fn transition_time(condition: &PodCondition, old: &PodStatus, now: Option<Time>) -> Option<Time> {
    match find(old, &condition.type_) {
        Some(before) if before.status == condition.status => before.last_transition_time.clone().or(now),
        _ => now,
    }
}

pub(crate) fn find<'a>(status: &'a PodStatus, type_: &str) -> Option<&'a PodCondition> {
    status.conditions.iter().flatten().find(|c| c.type_ == type_)
}

/// Replaces the condition of the same type, or appends it.
pub(crate) fn put(status: &mut PodStatus, condition: PodCondition) {
    let list = status.conditions.get_or_insert_default();
    match list.iter_mut().find(|c| c.type_ == condition.type_) {
        Some(old) => *old = condition,
        None => list.push(condition),
    }
}

pub(crate) fn verdict(type_: &str, status: bool, reason: &str, message: &str) -> PodCondition {
    let some = |s: &str| (!s.is_empty()).then(|| s.to_owned());
    PodCondition {
        type_: type_.to_owned(),
        status: if status { "True" } else { "False" }.to_owned(),
        reason: some(reason),
        message: some(message),
        ..PodCondition::default()
    }
}

fn is_true(status: &PodStatus, type_: &str) -> bool {
    find(status, type_).is_some_and(|c| c.status == "True")
}

/// True until the last container is removed.
fn all_restarting(input: &StatusInput<'_>, base: &PodStatus, phase: &str) -> PodCondition {
    let type_ = ty::ALL_CONTAINERS_RESTARTING;
    if phase == pod_phase::SUCCEEDED || phase == pod_phase::FAILED {
        return terminal(type_, phase);
    }
    let removed = || containers(input.pod).all(|c| input.observed.container(&c.name).is_none());
    if !restarts_all(input, base) || removed() {
        return verdict(type_, false, "", "");
    }
    verdict(type_, true, "RestartAllContainersStarted", "container exited with restart policy rule")
}

/// Container names that fall short of something, and those that have no status at all.
#[derive(Default)]
struct Short<'a> {
    unknown: Vec<&'a str>,
    short: Vec<&'a str>,
}

impl<'a> Short<'a> {
    fn check(&mut self, container: &'a Container, all: &[&ContainerStatus], good: impl Fn(&ContainerStatus) -> bool) {
        match all.iter().find(|s| s.name == container.name) {
            None => self.unknown.push(&container.name),
            Some(status) if !good(status) => self.short.push(&container.name),
            Some(_) => {}
        }
    }

    /// Lists print as Go slices do: space separated, in brackets.
    fn message(&self, what: &str) -> String {
        let part = |names: &[&str], what: &str| {
            (!names.is_empty()).then(|| format!("containers with {what} status: [{}]", names.join(" ")))
        };
        let parts: Vec<String> =
            [part(&self.unknown, "unknown"), part(&self.short, what)].into_iter().flatten().collect();
        parts.join(", ")
    }
}

fn initialized(p: &Pod, statuses: &[&ContainerStatus], phase: &str, was: bool) -> PodCondition {
    let inits = pod::init_containers(p);
    if statuses.is_empty() && !inits.is_empty() {
        return verdict(ty::INITIALIZED, false, "UnknownContainerStatuses", "");
    }
    let mut short = Short::default();
    for c in inits {
        let sidecar = pod::is_sidecar(c);
        short.check(c, statuses, |s| if sidecar { s.started == Some(true) } else { s.ready });
    }
    if phase == pod_phase::SUCCEEDED && short.unknown.is_empty() {
        return verdict(ty::INITIALIZED, true, "PodCompleted", "");
    }
    let regular = pod::regular_containers(p);
    let began = |s: &&ContainerStatus| is_running(s) || ended(s).is_some();
    let any_began = statuses.iter().copied().filter(began).any(|s| regular.iter().any(|c| c.name == s.name));
    let message = short.message("incomplete");
    if any_began || message.is_empty() || was {
        return verdict(ty::INITIALIZED, true, "", "");
    }
    verdict(ty::INITIALIZED, false, "ContainersNotInitialized", &message)
}

pub(crate) fn containers_ready(p: &Pod, statuses: &[&ContainerStatus], phase: &str) -> PodCondition {
    let type_ = ty::CONTAINERS_READY;
    if statuses.is_empty() {
        return verdict(type_, false, "UnknownContainerStatuses", "");
    }
    let sidecars = pod::init_containers(p).iter().filter(|c| pod::is_sidecar(c));
    let mut short = Short::default();
    for c in sidecars.chain(pod::regular_containers(p)) {
        short.check(c, statuses, |s| s.ready);
    }
    if phase == pod_phase::FAILED || (phase == pod_phase::SUCCEEDED && short.unknown.is_empty()) {
        return terminal(type_, phase);
    }
    let message = short.message("unready");
    if message.is_empty() {
        return verdict(type_, true, "", "");
    }
    verdict(type_, false, "ContainersNotReady", &message)
}

/// Ready, ContainersReady and AllContainersRestarting of a pod that has ended.
pub(crate) fn terminal(type_: &str, phase: &str) -> PodCondition {
    let reason = if phase == pod_phase::SUCCEEDED { "PodCompleted" } else { "PodFailed" };
    verdict(type_, false, reason, "")
}

/// `conditions`: those that readiness gates may name.
pub(crate) fn ready(p: &Pod, statuses: &[&ContainerStatus], phase: &str, conditions: &[PodCondition]) -> PodCondition {
    let containers = containers_ready(p, statuses, phase);
    if containers.status != "True" {
        return PodCondition { type_: ty::READY.to_owned(), ..containers };
    }
    let gates = p.spec.as_ref().and_then(|s| s.readiness_gates.as_deref()).unwrap_or_default();
    let unmet = gates.iter().filter_map(|gate| {
        let gate = gate.condition_type.as_str();
        match conditions.iter().find(|c| c.type_ == gate) {
            None => Some(format!("corresponding condition of pod readiness gate \"{gate}\" does not exist.")),
            Some(c) if c.status != "True" => {
                Some(format!("the status of pod readiness gate \"{gate}\" is not \"True\", but {}", c.status))
            }
            Some(_) => None,
        }
    });
    let message = unmet.collect::<Vec<_>>().join(", ");
    if message.is_empty() {
        return verdict(ty::READY, true, "", "");
    }
    verdict(ty::READY, false, "ReadinessGatesNotReady", &message)
}
