//! Admission: which pods were refused, and which wait to be decided about or for room (pod-lifecycle 1.10, 1.11).

use std::collections::{BTreeMap, BTreeSet};

use contract::eviction::NodePressure;
use contract::node::NodeView;
use model::core::{Container, Node, Pod};
use model::restart::restarts_after_exit;
use model::runtime::{ContainerState, PodObservation};
use model::{PodUid, Timestamp};
use pod_admission::{NodeFacts, Pressure};

use crate::desired::Change;
use crate::preemption::Preemption;

/// Reason and message of a refusal.
pub(crate) type Rejection = (String, String);

/// Pods that were not simply admitted.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    rejected: BTreeMap<PodUid, Rejection>,
    pending: BTreeMap<PodUid, Pending>,
}

/// Why an admitted or undecided pod has no worker yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    /// An earlier generation of the actor did not come to a decision, or to its end; this one decides anew.
    LeftUndecided,
    /// The Node is read once more, since only its labels stand in the way.
    ReadingNode,
    /// Others are stopped first.
    Preempting(Preemption),
}

impl Admission {
    pub(crate) fn reject(&mut self, uid: PodUid, rejection: Rejection) {
        self.rejected.insert(uid, rejection);
    }

    pub(crate) fn rejection(&self, uid: &PodUid) -> Option<&Rejection> {
        self.rejected.get(uid)
    }

    pub(crate) fn is_rejected(&self, uid: &PodUid) -> bool {
        self.rejected.contains_key(uid)
    }

    pub(crate) fn wait(&mut self, uid: PodUid, pending: Pending) {
        self.pending.insert(uid, pending);
    }

    pub(crate) fn is_pending(&self, uid: &PodUid) -> bool {
        self.pending.contains_key(uid)
    }

    /// Whether the pod is admitted and waits for others to make room.
    pub(crate) fn is_preempting(&self, uid: &PodUid) -> bool {
        matches!(self.pending.get(uid), Some(Pending::Preempting(_)))
    }

    /// Whether a pod waits for this one to be gone.
    pub(crate) fn is_victim(&self, uid: &PodUid) -> bool {
        let waits_for = |pending: &Pending| matches!(pending, Pending::Preempting(p) if p.victims.contains(uid));
        self.pending.values().any(waits_for)
    }

    /// Pods that an earlier generation of the actor left undecided.
    pub(crate) fn left_undecided(&self) -> impl Iterator<Item = &PodUid> {
        self.pending.iter().filter(|(_, pending)| **pending == Pending::LeftUndecided).map(|(uid, _)| uid)
    }

    /// The pod is decided about now.
    pub(crate) fn end_wait(&mut self, uid: &PodUid) {
        self.pending.remove(uid);
    }

    /// The Node was read for this pod; `false`: the pod has gone meanwhile, or waits for something else.
    pub(crate) fn node_was_read(&mut self, uid: &PodUid) -> bool {
        let waited = self.pending.get(uid) == Some(&Pending::ReadingNode);
        if waited {
            self.pending.remove(uid);
        }
        waited
    }

    /// Ends the wait of pods whose victims are all gone, or that have waited long enough; gives them with their victims.
    pub(crate) fn end_preemptions(
        &mut self,
        now: Timestamp,
        is_gone: impl Fn(&PodUid) -> bool,
    ) -> Vec<(PodUid, BTreeSet<PodUid>)> {
        let ready = |pending: &Pending| match pending {
            Pending::LeftUndecided | Pending::ReadingNode => None,
            Pending::Preempting(p) => p.is_over(now, &is_gone).then(|| p.victims.clone()),
        };
        let free: Vec<_> =
            self.pending.iter().filter_map(|(uid, pending)| Some((uid.clone(), ready(pending)?))).collect();
        for (uid, _) in &free {
            self.pending.remove(uid);
        }
        free
    }

    /// The pod is gone from its source.
    pub(crate) fn forget(&mut self, uid: &PodUid) {
        self.rejected.remove(uid);
        self.pending.remove(uid);
    }
}

/// Puts changes in the order in which they are admitted. Of new pods those that run already come first, in case not all fit
/// any more: after a restart of the daemon every pod is new, and a running one must not make room for one that does not run.
pub(crate) fn sort_for_admission(changes: &mut [Change], is_alive: impl Fn(&PodUid) -> bool) {
    changes.sort_by_key(|change| match change {
        Change::Remove(_) => 0,
        Change::Add(pod) if is_alive(&model::pod::uid(pod)) => 1,
        Change::Add(_) => 2,
        Change::Update(_) | Change::Delete(_) | Change::Reconcile(_) => 3,
    });
}

/// The node as admission shall see it: what this machine knows of itself first, then what its Node object adds (labels,
/// taints, resources that others put there).
pub(crate) fn facts(own: &NodeFacts, view: &NodeView, pressure: &NodePressure, fresh: Option<&Node>) -> NodeFacts {
    let mut out = own.clone();
    if let Some(node) = fresh.or(view.node.as_deref()) {
        let of_object = NodeFacts::from_node(node);
        out.labels = of_object.labels;
        out.taints = of_object.taints;
        for (name, amount) in of_object.allocatable {
            out.allocatable.entry(name).or_insert(amount);
        }
        if !of_object.name.is_empty() {
            out.name = of_object.name;
        }
        out.kernel = own.kernel.or(of_object.kernel);
        out.supplemental_groups_policy |= of_object.supplemental_groups_policy;
        out.declared_features = of_object.declared_features.or(out.declared_features);
    }
    out.pressures = pressure.conditions.iter().filter_map(|held| Pressure::parse(held)).collect();
    out.shutting_down |= view.shutting_down;
    out
}

/// Whether nothing of this pod will run again, by what is left of it in the runtime: every container has ended, or one that
/// begins before the others has failed, and none is started again.
pub(crate) fn has_run_to_end(pod: &Pod, observed: &PodObservation) -> bool {
    let containers = model::pod::regular_containers(pod);
    // What a container ended with, where that is its end.
    let end = |container: &Container| {
        let last = observed.container(&container.name).filter(|c| c.state == ContainerState::Exited)?;
        (!restarts_after_exit(pod, container, last.exit_code, true)).then_some(last.exit_code)
    };
    // Rules of single containers may start them again.
    let plain = |container: &Container| container.restart_policy.is_none();
    let stands_still = model::pod::init_containers(pod).iter().any(|c| end(c).is_some_and(|exit_code| exit_code != 0));
    let have_ended = || containers.iter().all(|c| plain(c) && end(c).is_some());
    !observed.is_alive() && (stands_still || have_ended())
}

#[cfg(test)]
mod tests;
