//! Housekeeping: what the boards show is compared with what should be, and the difference is dealt with chore by chore.
//!
//! `chores.rs` decides (pure), `effects.rs` runs the chores that ask other managers.

use std::collections::BTreeSet;

use model::PodUid;

mod attention;
mod chores;
mod effects;

pub(crate) use attention::{Attention, Scope};
pub(crate) use chores::{Chore, DesiredFacts, Situation, chores};
pub(crate) use effects::{Done, run};

/// What is under way, and what other managers were told last.
#[derive(Debug, Default)]
pub(crate) struct Housekeeping {
    scheduled: bool,
    /// Chores under way, each at most once.
    running: BTreeSet<Chore>,
    /// The pods that StatusManager and ProbeManager were told last to keep.
    retained: BTreeSet<PodUid>,
    /// They are to be told again, whatever they were told.
    retain_again: bool,
    pub(crate) attention: Attention,
}

impl Housekeeping {
    /// Whether a round must be scheduled now; `false`: one is scheduled already.
    pub(crate) fn schedule(&mut self) -> bool {
        !std::mem::replace(&mut self.scheduled, true)
    }

    pub(crate) fn begin(&mut self) {
        self.scheduled = false;
    }

    /// Whether the chore may begin; it counts as under way from now on.
    pub(crate) fn begin_chore(&mut self, chore: &Chore) -> bool {
        self.running.insert(chore.clone())
    }

    pub(crate) fn end_chore(&mut self, chore: &Chore) {
        self.running.remove(chore);
    }

    /// Whether others were told to keep this pod.
    pub(crate) fn has_retained(&self, uid: &PodUid) -> bool {
        self.retained.contains(uid)
    }

    /// Whether others must be told again.
    pub(crate) fn must_retain_again(&self) -> bool {
        self.retain_again
    }

    pub(crate) fn set_retained(&mut self, known: BTreeSet<PodUid>) {
        self.retained = known;
        self.retain_again = false;
    }

    /// Has them told again: a message may get lost.
    pub(crate) fn repeat_retained(&mut self) {
        self.retain_again = true;
    }
}
