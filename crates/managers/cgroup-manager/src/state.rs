//! What the actor remembers: which pods have a cgroup, and what the tiers were last told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cgroup_values::tiers::{self, Tiers};
use cgroup_values::{HostFacts, LimitRules};
use model::PodUid;
use model::core::Pod;

/// A pod that has a cgroup.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Known {
    /// Path below the cgroup mount.
    pub path: String,
    /// Its specification, once somebody has shown it.
    pub pod: Option<Arc<Pod>>,
}

/// Plain data; [`State::refresh`] makes it agree with the tree.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct State {
    pub pods: BTreeMap<PodUid, Known>,
    /// Pods whose limits this generation has seen to; `false`: they could not be written.
    pub limited: BTreeMap<PodUid, bool>,
    /// Pods whose cgroup was made or removed since the tree began to be read: the reading may not know of it.
    touched: BTreeSet<PodUid>,
    /// What the tiers are to have by what is known of all pods; `None`: that is another since it was summed up.
    values: Option<Tiers>,
    /// What was written last.
    written: Option<Tiers>,
    writing: bool,
    /// Somebody asked for a write while one was under way, and that one may be forced.
    again: Option<bool>,
}

/// What the tree and the state differ in after a scan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Difference {
    pub appeared: Vec<PodUid>,
    pub vanished: Vec<PodUid>,
}

impl State {
    /// The tree begins to be read.
    pub(crate) fn scan_begins(&mut self) {
        self.touched.clear();
    }

    /// The pod has a cgroup now.
    pub(crate) fn made(&mut self, uid: &PodUid, path: &str, pod: Arc<Pod>) {
        self.touched.insert(uid.clone());
        let is_same = |known: &Known| known.pod.as_ref().is_some_and(|known| Arc::ptr_eq(known, &pod));
        if !self.pods.get(uid).is_some_and(is_same) {
            self.values = None;
        }
        self.pods.insert(uid.clone(), Known { path: path.to_owned(), pod: Some(pod) });
    }

    /// The pod has no cgroup any more.
    pub(crate) fn removed(&mut self, uid: &PodUid) {
        self.touched.insert(uid.clone());
        self.values = None;
        self.pods.remove(uid);
        self.limited.remove(uid);
    }

    /// Takes over what the tree showed. Specifications that are known stay.
    pub(crate) fn refresh(&mut self, found: BTreeMap<PodUid, String>) -> Difference {
        let touched = std::mem::take(&mut self.touched);
        let gone = |u: &PodUid| !found.contains_key(u) && !touched.contains(u);
        let vanished: Vec<PodUid> = self.pods.keys().filter(|u| gone(u)).cloned().collect();
        if !vanished.is_empty() {
            self.values = None;
        }
        self.pods.retain(|u, _| !gone(u));
        self.limited.retain(|u, _| !gone(u));
        let mut appeared = Vec::new();
        for (uid, path) in found.into_iter().filter(|(u, _)| !touched.contains(u)) {
            let known = self.pods.entry(uid.clone()).or_insert_with(|| {
                appeared.push(uid);
                Known { path: String::new(), pod: None }
            });
            known.path = path;
        }
        Difference { appeared, vanished }
    }

    /// Fills in specifications that a restart lost.
    pub(crate) fn learn(&mut self, look_up: impl Fn(&PodUid) -> Option<Arc<Pod>>) {
        for (uid, known) in self.pods.iter_mut().filter(|(_, k)| k.pod.is_none()) {
            known.pod = look_up(uid);
            if known.pod.is_some() {
                self.values = None;
            }
        }
    }

    /// Values to write to the tiers now, or `None` when nothing changed or a write is under way (it is
    /// followed by another then). `force` writes what is unchanged too. `facts` and `rules` are always the same.
    pub(crate) fn tiers_to_write(&mut self, facts: &HostFacts, rules: &LimitRules, force: bool) -> Option<Tiers> {
        if self.writing {
            self.again = Some(force || self.again == Some(true));
            return None;
        }
        // Each step of each pod comes here, and nearly all of them changed nothing.
        let sum = || tiers::values(self.pods.values().filter_map(|k| k.pod.as_deref()), facts, rules);
        let values = self.values.take().unwrap_or_else(sum);
        self.values = Some(values.clone());
        if !force && self.written.as_ref() == Some(&values) {
            return None;
        }
        self.written = Some(values.clone());
        self.writing = true;
        Some(values)
    }

    /// A write ended. Answers whether another one was asked for meanwhile, and whether by force.
    pub(crate) fn tiers_written(&mut self, ok: bool) -> Option<bool> {
        self.writing = false;
        if !ok {
            self.written = None;
        }
        self.again.take()
    }
}
