//! Which id belongs to which pod, since when it is known, and which ids are no more.

use std::collections::{BTreeMap, BTreeSet};

use model::runtime::PodObservation;
use model::{PodUid, SandboxId};

use crate::view::Ids;

#[derive(Clone, Debug)]
struct Entry {
    uid: PodUid,
    /// `None` for a sandbox itself.
    sandbox: Option<SandboxId>,
    born: u64,
    gone: Option<u64>,
    own: bool,
}

/// Ids of sandboxes and containers; the runtime numbers both out of one set.
#[derive(Debug, Default)]
pub(crate) struct Index(BTreeMap<String, Entry>);

impl Index {
    pub(crate) fn learn_sandbox(&mut self, id: &str, uid: &PodUid, seq: u64) {
        self.learn(id, uid, None, seq);
    }

    pub(crate) fn learn_container(&mut self, id: &str, uid: &PodUid, sandbox: &SandboxId, seq: u64) {
        self.learn(id, uid, Some(sandbox.clone()), seq);
    }

    fn learn(&mut self, id: &str, uid: &PodUid, sandbox: Option<SandboxId>, born: u64) {
        if !self.0.contains_key(id) {
            self.0.insert(id.to_owned(), Entry { uid: uid.clone(), sandbox, born, gone: None, own: false });
        }
    }

    /// A call of ours made or started it, and its answer brings an inspection: events of that tell nothing new.
    pub(crate) fn own(&mut self, id: &str) {
        if let Some(e) = self.0.get_mut(id) {
            e.own = true;
        }
    }

    pub(crate) fn is_own(&self, id: &str) -> bool {
        self.0.get(id).is_some_and(|e| e.own)
    }

    /// An inspection or list that began at `seq` shows it: if it was thought gone before that, that was an error.
    pub(crate) fn shown(&mut self, id: &str, seq: u64) {
        if let Some(e) = self.0.get_mut(id).filter(|e| e.gone.is_some_and(|gone| gone < seq)) {
            e.gone = None;
        }
    }

    pub(crate) fn learn_pod(&mut self, pod: &PodObservation, seq: u64) {
        for s in &pod.sandboxes {
            self.learn_sandbox(s.id.as_str(), &pod.uid, seq);
        }
        for c in &pod.containers {
            self.learn_container(c.id.as_str(), &pod.uid, &c.sandbox, seq);
        }
    }

    /// From `seq` on it exists no more.
    pub(crate) fn bury(&mut self, id: &str, seq: u64) {
        if let Some(e) = self.0.get_mut(id) {
            e.gone.get_or_insert(seq);
        }
    }

    /// Known to exist no more.
    pub(crate) fn is_gone(&self, id: &str) -> bool {
        self.0.get(id).is_some_and(|e| e.gone.is_some())
    }

    pub(crate) fn uid(&self, id: &str) -> Option<&PodUid> {
        self.0.get(id).map(|e| &e.uid)
    }

    /// `None`: unknown. `Some(None)`: it is a sandbox.
    pub(crate) fn sandbox(&self, id: &str) -> Option<Option<&SandboxId>> {
        self.0.get(id).map(|e| e.sandbox.as_ref())
    }

    /// Forgets what a relist that began at `relist` did not find: ids in no row, and those that were gone before. No
    /// inspection from before it is under way any more.
    pub(crate) fn prune(&mut self, relist: u64, live: &BTreeSet<&str>) {
        self.0.retain(|id, e| match e.gone {
            Some(gone) => gone > relist,
            None => e.born > relist || live.contains(id.as_str()),
        });
    }

    /// As it is for an inspection that began at `seq`.
    pub(crate) fn at(&self, seq: u64) -> At<'_> {
        At { index: self, seq }
    }
}

pub(crate) struct At<'a> {
    index: &'a Index,
    seq: u64,
}

impl Ids for At<'_> {
    fn is_gone(&self, id: &str) -> bool {
        self.index.is_gone(id)
    }

    fn is_newer(&self, id: &str) -> bool {
        self.index.0.get(id).is_some_and(|e| e.born > self.seq)
    }
}
