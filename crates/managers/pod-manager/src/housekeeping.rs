//! Housekeeping: what the boards show is compared with what should be, and the difference is dealt with chore by chore.
//!
//! `chores.rs` decides (pure), `effects.rs` runs the chores that ask other managers.

use std::collections::BTreeSet;

use metrics::volumes::{ORPHANS_CLEANED, ORPHANS_CLEANED_ERRORS};
use model::PodUid;

mod attention;
mod chores;
mod effects;

pub(crate) use attention::{Attention, Scope};
pub(crate) use chores::{Chore, DesiredFacts, Situation, Stray, chores};
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
    /// Folders of pods that were to be taken away in this period, and those that could not be.
    orphans: [i64; 2],
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
        let begins = self.running.insert(chore.clone());
        if begins && matches!(chore, Chore::RemovePodDir(_)) {
            self.orphans[0] += 1;
        }
        begins
    }

    pub(crate) fn end_chore(&mut self, chore: &Chore, is_done: bool) {
        self.running.remove(chore);
        if !is_done && matches!(chore, Chore::RemovePodDir(_)) {
            self.orphans[1] += 1;
        }
    }

    /// A period is over: what it took away is told.
    pub(crate) fn tell_orphans(&mut self) {
        let [all, failed] = std::mem::take(&mut self.orphans);
        ORPHANS_CLEANED.set(all);
        ORPHANS_CLEANED_ERRORS.set(failed);
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

#[cfg(test)]
mod tests {
    use metrics::volumes::{ORPHANS_CLEANED, ORPHANS_CLEANED_ERRORS};

    use super::{Chore, Housekeeping};

    #[test]
    fn a_period_tells_of_the_folders_that_it_took_away_or_could_not() {
        let mut of = Housekeeping::default();
        let told = |of: &mut Housekeeping| {
            of.tell_orphans();
            (ORPHANS_CLEANED.get(), ORPHANS_CLEANED_ERRORS.get())
        };
        let folder = |uid: &str| Chore::RemovePodDir(uid.into());
        assert!(of.begin_chore(&folder("a")) && of.begin_chore(&folder("b")) && !of.begin_chore(&folder("b")));
        assert!(of.begin_chore(&Chore::RemoveCgroup("c".into())));
        of.end_chore(&Chore::RemoveCgroup("c".into()), false);
        of.end_chore(&folder("a"), true);
        of.end_chore(&folder("b"), false);
        assert_eq!((told(&mut of), told(&mut of)), ((2, 1), (0, 0)));
    }
}
