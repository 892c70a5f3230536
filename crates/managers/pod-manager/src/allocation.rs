//! Pods of which not all is granted that they ask for (node-and-resources 1.12), and the files that keep what is.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::PodUid;
use model::allocation::{Allocation, PendingResize, Resizable};
use model::core::Pod;

pub(crate) mod checkpoint;
pub(crate) mod told;

use crate::preemption::Preemption;
use checkpoint::Before;

/// A pod that asks for something else than it was granted.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// What it was granted.
    pub(crate) allocation: Arc<Allocation>,
    /// The newest specification with that.
    pub(crate) acts_on: Arc<Pod>,
    /// What is told of its wait.
    pub(crate) pending: Option<PendingResize>,
    /// How it stands.
    pub(crate) stage: Stage,
}

/// How a resize stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stage {
    /// Nobody has decided about what it asks for now.
    New,
    /// It waits for room, and is decided about again.
    Deferred,
    /// It waits for others to end, which were told to: the room that they leave is claimed.
    Preempting(Arc<Pod>, Preemption),
    /// It cannot be had, until it asks for something else.
    Infeasible,
    /// It is granted and being written down: the pod has a claim on it already. The word that metrics have for the occasion, where
    /// it had waited.
    Granting(Arc<Pod>, Option<&'static str>),
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Allocations {
    held: BTreeMap<PodUid, Held>,
    /// Resizes whose containers may not have it yet: what was granted before.
    actuating: BTreeMap<PodUid, Arc<Allocation>>,
}

impl Allocations {
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(crate) fn get(&self, uid: &PodUid) -> Option<&Held> {
        self.held.get(uid)
    }

    pub(crate) fn get_mut(&mut self, uid: &PodUid) -> Option<&mut Held> {
        self.held.get_mut(uid)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PodUid, &Held)> {
        self.held.iter()
    }

    /// The pod was granted this, whatever it asks for now. Nothing is held where it asks for just that.
    pub(crate) fn hold(&mut self, pod: &Arc<Pod>, allocation: Arc<Allocation>, what: Resizable) {
        let uid = model::pod::uid(pod);
        let acts_on = allocation.overlay(pod, what);
        if Arc::ptr_eq(&acts_on, pod) {
            self.held.remove(&uid);
            return;
        }
        let before = self.held.remove(&uid);
        let pending = before.and_then(|h| h.pending);
        self.held.insert(uid, Held { allocation, acts_on, pending, stage: Stage::New });
    }

    /// What an earlier daemon told of its wait.
    pub(crate) fn was_told(&mut self, uid: &PodUid, pending: Option<PendingResize>) {
        if let Some(held) = self.held.get_mut(uid) {
            held.pending = pending;
        }
    }

    /// As a row of the board has it.
    pub(crate) fn recover(&mut self, uid: PodUid, granted: &Arc<Pod>, pending: Option<PendingResize>, what: Resizable) {
        let allocation = Arc::new(Allocation::of(granted, what));
        self.held.insert(uid, Held { allocation, acts_on: granted.clone(), pending, stage: Stage::New });
    }

    /// A pod that may be held is not as it was.
    pub(crate) fn refresh(&mut self, before: &Pod, pod: &Arc<Pod>, what: Resizable) {
        let uid = model::pod::uid(pod);
        let Some(held) = self.held.get_mut(&uid) else { return };
        let acts_on = held.allocation.overlay(pod, what);
        if Arc::ptr_eq(&acts_on, pod) {
            self.held.remove(&uid);
        } else {
            held.acts_on = acts_on;
            if !model::allocation::asks_the_same(before, pod, what) {
                held.stage = Stage::New;
            }
        }
    }

    /// Whether something is granted that is not written down.
    pub(crate) fn is_granting(&self) -> bool {
        self.held.values().any(|held| matches!(held.stage, Stage::Granting(..)))
    }

    /// Whether a resize waits for this pod to be gone.
    pub(crate) fn is_victim(&self, uid: &PodUid) -> bool {
        self.held.values().any(|held| matches!(&held.stage, Stage::Preempting(_, p) if p.victims.contains(uid)))
    }

    pub(crate) fn forget(&mut self, uid: &PodUid) {
        self.held.remove(uid);
        self.actuating.remove(uid);
    }

    /// The pod's containers had this when it was granted something else.
    pub(crate) fn begin_actuation(&mut self, uid: PodUid, had: Arc<Allocation>) {
        self.actuating.entry(uid).or_insert(had);
    }

    /// What containers may still have.
    pub(crate) fn actuating(&self) -> &BTreeMap<PodUid, Arc<Allocation>> {
        &self.actuating
    }

    /// The pod's containers have what it was granted.
    pub(crate) fn end_actuation(&mut self, uid: &PodUid) {
        self.actuating.remove(uid);
    }
}

/// How far the files are.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    /// What was granted before this generation of the actor; `None`: not read yet.
    pub(crate) loaded: Option<Before>,
    pub(crate) running: bool,
    pub(crate) again: bool,
    pub(crate) scheduled: bool,
}
