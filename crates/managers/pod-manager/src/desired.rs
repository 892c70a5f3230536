//! The desired pods: the last full set of each source, and which sources have delivered one.
//!
//! `merge.rs` (pure) says what a new set changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contract::config_sources::Source;
use contract::pod_manager::SetPods;
use model::core::Pod;
use model::{PodUid, Timestamp};

mod merge;

pub(crate) use merge::{Change, Merge, is_acted_on};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct DesiredPods {
    sets: BTreeMap<Source, BTreeMap<PodUid, Arc<Pod>>>,
    /// Sources that have delivered a complete set to this generation of the actor.
    delivered: BTreeSet<Source>,
    /// Sets that came before the runtime was known; of each source the latest.
    early: BTreeMap<Source, SetPods>,
    /// The order in which pods came; static pods of one name run in it.
    arrivals: Vec<PodUid>,
}

impl DesiredPods {
    /// Takes pods over from the board, after a restart of the actor. They keep the order of their first-seen stamps.
    pub(crate) fn recover(&mut self, pods: impl Iterator<Item = (Source, Arc<Pod>)>) {
        let mut arrivals: Vec<(String, PodUid)> = Vec::new();
        for (source, pod) in pods {
            let seen = model::pod::annotation(&pod, model::pod::CONFIG_SEEN).unwrap_or_default().to_owned();
            let uid = model::pod::uid(&pod);
            arrivals.push((seen, uid.clone()));
            self.sets.entry(source).or_default().insert(uid, pod);
        }
        arrivals.sort();
        self.arrivals = arrivals.into_iter().map(|(_, uid)| uid).collect();
    }

    /// Keeps a set until the runtime is known.
    pub(crate) fn postpone(&mut self, set: SetPods) {
        self.early.insert(set.source, set);
    }

    /// Gives the postponed sets back.
    pub(crate) fn postponed(&mut self) -> impl Iterator<Item = SetPods> + use<> {
        std::mem::take(&mut self.early).into_values()
    }

    /// Puts a new full set in the place of the last one of its source. Gives what that changes, and the last one.
    pub(crate) fn merge(&mut self, set: SetPods, now: Timestamp) -> (Merge, BTreeMap<PodUid, Arc<Pod>>) {
        let before = self.sets.remove(&set.source).unwrap_or_default();
        let mut merge = merge::merge(set.source.as_str(), &before, set.pods, now);
        if !set.provisional {
            self.delivered.insert(set.source);
        }
        self.sets.insert(set.source, std::mem::take(&mut merge.next));
        (merge, before)
    }

    /// Puts back what was known of one pod before its source's last set, so that the next one brings the change again.
    pub(crate) fn undo(&mut self, source: Source, uid: PodUid, before: Option<&Arc<Pod>>) {
        let pods = self.sets.entry(source).or_default();
        match before {
            Some(pod) => pods.insert(uid, pod.clone()),
            None => pods.remove(&uid),
        };
    }

    pub(crate) fn pod(&self, uid: &PodUid) -> Option<&Arc<Pod>> {
        self.sets.values().find_map(|pods| pods.get(uid))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PodUid, &Arc<Pod>)> {
        self.sets.values().flatten()
    }

    pub(crate) fn uids(&self) -> impl Iterator<Item = PodUid> {
        self.iter().map(|(uid, _)| uid.clone())
    }

    /// Pods of the folder and the URL.
    pub(crate) fn static_pods(&self) -> impl Iterator<Item = (Source, &Arc<Pod>)> {
        let of_node = self.sets.iter().filter(|(source, _)| **source != Source::Api);
        of_node.flat_map(|(source, pods)| pods.values().map(|pod| (*source, pod)))
    }

    pub(crate) fn static_pod(&self, full_name: &str) -> Option<(Source, &Arc<Pod>)> {
        self.static_pods().find(|(_, pod)| model::pod::full_name(pod) == full_name)
    }

    pub(crate) fn has_delivered(&self, source: Source) -> bool {
        self.delivered.contains(&source)
    }

    /// Whether all these sources have delivered. Before that nothing unknown is touched.
    pub(crate) fn all_delivered(&self, sources: &BTreeSet<Source>) -> bool {
        sources.is_subset(&self.delivered)
    }

    pub(crate) fn arrivals(&self) -> &[PodUid] {
        &self.arrivals
    }

    pub(crate) fn arrive(&mut self, uid: &PodUid) {
        if !self.arrivals.contains(uid) {
            self.arrivals.push(uid.clone());
        }
    }

    /// Forgets when a pod came, unless it is desired again.
    pub(crate) fn leave(&mut self, uid: &PodUid) {
        if self.pod(uid).is_none() {
            self.arrivals.retain(|other| other != uid);
        }
    }
}
