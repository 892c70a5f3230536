//! Which pods a round of housekeeping looks at: those of which something changed, and those with a chore that is not done yet.
//! All of them only at the begin, when a source has delivered for the first time, and once per period of garbage collection.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contract::Crew;
use contract::board::{BoardReader, Key};
use contract::cgroup::PodCgroupRow;
use contract::pod_worker::WorkerState;
use contract::runtime::Observed;
use contract::status::StatusEntry;
use contract::volume::PodVolumes;
use model::PodUid;

/// What a round looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    Of(BTreeSet<PodUid>),
}

impl Scope {
    /// Whether nothing changed, and nothing is left to do.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Scope::Of(uids) if uids.is_empty())
    }

    /// The rows of these pods.
    pub(crate) fn rows<V: Send + Sync + 'static>(&self, board: &BoardReader<PodUid, V>) -> BTreeMap<PodUid, Arc<V>> {
        match self {
            Scope::All => board.snapshot(),
            Scope::Of(uids) => uids.iter().filter_map(|uid| Some((uid.clone(), board.get(uid)?))).collect(),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Attention {
    all: bool,
    touched: BTreeSet<PodUid>,
    /// Pods with a chore that was not done when it was looked last.
    open: BTreeSet<PodUid>,
    /// Sources that had delivered.
    delivered: usize,
    /// How far the boards were followed.
    seen: [Option<u64>; 5],
}

impl Default for Attention {
    /// Everything is to be looked at.
    fn default() -> Self {
        Self { all: true, touched: BTreeSet::new(), open: BTreeSet::new(), delivered: 0, seen: [None; 5] }
    }
}

impl Attention {
    /// Has a pod looked at in the next round.
    pub(crate) fn touch(&mut self, uid: &PodUid) {
        if !self.touched.contains(uid) {
            self.touched.insert(uid.clone());
        }
    }

    /// Has all pods looked at in the next round.
    pub(crate) fn touch_all(&mut self) {
        self.all = true;
    }

    /// There is something to do for a pod: it is looked at again a period later, until there is not.
    pub(crate) fn keep_open(&mut self, uid: PodUid) {
        self.open.insert(uid);
    }

    /// A period is over.
    pub(crate) fn touch_open(&mut self) {
        self.touched.append(&mut self.open);
    }

    /// What the next round looks at; it begins now. `delivered`: the sources that have.
    pub(crate) fn take(&mut self, crew: &Crew<contract::PodManager>, delivered: usize) -> Scope {
        let mut touched = std::mem::take(&mut self.touched);
        let mut all = std::mem::take(&mut self.all) | (std::mem::replace(&mut self.delivered, delivered) != delivered);
        let [workers, observed, volumes, cgroups, statuses] = &mut self.seen;
        all |= !follow(&crew.board::<WorkerState>(), workers, &mut touched);
        all |= !follow(&crew.board::<Observed>(), observed, &mut touched);
        all |= !follow(&crew.board::<PodVolumes>(), volumes, &mut touched);
        all |= !follow(&crew.board::<PodCgroupRow>(), cgroups, &mut touched);
        all |= !follow(&crew.board::<StatusEntry>(), statuses, &mut touched);
        if all {
            self.open.clear();
            return Scope::All;
        }
        self.open.retain(|uid| !touched.contains(uid));
        Scope::Of(touched)
    }
}

/// Adds the keys that changed; `false`: all may have.
fn follow<K: Key, V: Send + Sync + 'static>(
    board: &BoardReader<K, V>,
    seen: &mut Option<u64>,
    touched: &mut BTreeSet<K>,
) -> bool {
    let changed = board.changed(seen);
    let known = changed.is_some();
    touched.extend(changed.into_iter().flatten());
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::Wiring;
    use contract::cgroup::PodCgroupRow;

    #[test]
    fn a_pod_is_looked_at_for_a_change_and_then_until_its_chore_is_done() {
        let wiring = Wiring::default();
        let crew = wiring.crew::<contract::PodManager>();
        let mut attention = Attention::default();
        let of = |uids: &[&str]| Scope::Of(uids.iter().map(|uid| PodUid::from(*uid)).collect());
        assert_eq!(attention.take(&crew, 0), Scope::All, "at first");
        assert_eq!(attention.take(&crew, 0), of(&[]));
        wiring.put("u1".into(), PodCgroupRow { path: "/u1".into() });
        attention.touch(&"u2".into());
        assert_eq!(attention.take(&crew, 0), of(&["u1", "u2"]));
        attention.keep_open("u1".into());
        assert_eq!(attention.take(&crew, 0), of(&[]), "not before the period is over");
        attention.touch_open();
        assert_eq!(attention.take(&crew, 0), of(&["u1"]));
        attention.touch_open();
        assert_eq!(attention.take(&crew, 0), of(&[]), "nothing is left to do");
        assert_eq!(attention.take(&crew, 1), Scope::All, "a source has delivered");
        attention.touch_all();
        assert_eq!(attention.take(&crew, 1), Scope::All);
        assert_eq!(attention.take(&crew, 1), of(&[]));
    }
}
