//! What an inspection of a pod showed, and how it changes what is known. Pure: no calls, no clock.

use std::collections::BTreeSet;

use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};

mod ips;
pub(crate) mod list;
pub(crate) mod map;

/// Result of one inspection of one pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Inspected {
    /// Everything the runtime has of the pod was inspected; what is not here is gone.
    pub(crate) complete: bool,
    /// Namespace and name, when a label told.
    pub(crate) names: Option<(String, String)>,
    pub(crate) sandboxes: Vec<SandboxObservation>,
    pub(crate) containers: Vec<ContainerObservation>,
    /// Ids that were asked for and do not exist.
    pub(crate) gone: BTreeSet<String>,
}

/// What the caller knows about ids beyond what was inspected.
pub(crate) trait Ids {
    /// Known to have been removed: an inspection that still shows it is older than the removal.
    fn is_gone(&self, id: &str) -> bool;
    /// Became known after the inspection began: its absence from that means nothing.
    fn is_newer(&self, id: &str) -> bool;
}

/// What is known after `inspected`; `None` when the runtime has nothing of the pod any more.
///
/// Inspections may arrive in another order than they were made in, so nothing goes backwards: a container never from exited
/// to running, a sandbox never from not-ready to ready, a removed id never back into being.
pub(crate) fn merge(old: &PodObservation, inspected: Inspected, ids: &impl Ids) -> Option<PodObservation> {
    let keep = |id: &str| !inspected.gone.contains(id) && (!inspected.complete || ids.is_newer(id));
    let mut next = PodObservation::empty(old.uid.clone(), &old.namespace, &old.name);
    if let Some((namespace, name)) = inspected.names {
        (next.namespace, next.name) = (namespace, name);
    }
    for s in inspected.sandboxes.into_iter().filter(|s| !ids.is_gone(s.id.as_str())) {
        let before = old.sandboxes.iter().find(|o| o.id == s.id);
        let s = before.filter(|o| s.ready && !o.ready).cloned().unwrap_or(s);
        // Two events of one moment tell of it twice.
        match next.sandboxes.iter_mut().find(|n| n.id == s.id) {
            Some(n) if s.ready && !n.ready => {}
            Some(n) => *n = s,
            None => next.sandboxes.push(s),
        }
    }
    for c in inspected.containers.into_iter().filter(|c| !ids.is_gone(c.id.as_str())) {
        let before = old.containers.iter().find(|o| o.id == c.id);
        let c = before.filter(|o| age(o.state) > age(c.state)).cloned().unwrap_or(c);
        match next.containers.iter_mut().find(|n| n.id == c.id) {
            Some(n) if age(n.state) > age(c.state) => {}
            Some(n) => *n = c,
            None => next.containers.push(c),
        }
    }
    for s in &old.sandboxes {
        if keep(s.id.as_str()) && !next.sandboxes.iter().any(|n| n.id == s.id) {
            next.sandboxes.push(s.clone());
        }
    }
    for c in &old.containers {
        if keep(c.id.as_str()) && !next.containers.iter().any(|n| n.id == c.id) {
            next.containers.push(c.clone());
        }
    }
    if next.sandboxes.is_empty() && next.containers.is_empty() {
        return None;
    }
    next.normalise();
    // Kept for as long as the pod is; a first push makes room for four.
    next.sandboxes.shrink_to_fit();
    next.containers.shrink_to_fit();
    next.ips = ips::of(&next, &old.ips);
    Some(next)
}

/// How far a container has come.
pub(crate) fn age(state: ContainerState) -> u8 {
    match state {
        ContainerState::Created => 0,
        // After a host crash a runtime may say unknown, and running or exited once it has looked.
        ContainerState::Running | ContainerState::Unknown => 1,
        ContainerState::Exited => 2,
    }
}

#[cfg(test)]
mod tests;
