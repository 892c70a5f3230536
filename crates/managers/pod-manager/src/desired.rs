//! The desired pods: the last full set of each source, and which sources have delivered one.
//!
//! `merge.rs` (pure) says what a new set changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contract::config_sources::Source;
use contract::pod_manager::{ChangePods, ChangesTaken, SetPods};
use model::allocation::{Allocation, PendingResize, Resizable};
use model::core::Pod;
use model::{PodUid, Timestamp};

use crate::allocation::{Allocations, Stage};

mod merge;
mod names;

pub(crate) use merge::{Change, is_acted_on};

use names::Names;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct DesiredPods {
    sets: BTreeMap<Source, BTreeMap<PodUid, Arc<Pod>>>,
    /// Number of the set that each source gave last, where changes may follow it.
    numbers: BTreeMap<Source, u64>,
    /// Sources that have delivered a complete set to this generation of the actor.
    delivered: BTreeSet<Source>,
    /// Sets that came before the runtime was known; of each source the latest.
    early: BTreeMap<Source, SetPods>,
    /// Pods by name, in the order in which they came: static pods of one name run in it.
    names: Names,
    /// Pods that ask for more than they are granted, or for less.
    pub(crate) allocations: Allocations,
}

/// What a word of a source changes.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// In order of delivery.
    pub(crate) changes: Vec<Change>,
    /// Pods left out because an earlier one of the set has the same full name.
    pub(crate) duplicates: Vec<Arc<Pod>>,
    /// The pods that changed as they were before; of a full set all of them.
    pub(crate) before: BTreeMap<PodUid, Arc<Pod>>,
}

impl DesiredPods {
    /// Takes pods over from the board, after a restart of the actor. They keep the order of their first-seen stamps.
    pub(crate) fn recover(&mut self, pods: impl Iterator<Item = (Source, Arc<Pod>)>) {
        let mut arrivals: Vec<(String, Arc<Pod>)> = Vec::new();
        for (source, pod) in pods {
            let seen = model::pod::annotation(&pod, model::pod::CONFIG_SEEN).unwrap_or_default().to_owned();
            self.sets.entry(source).or_default().insert(model::pod::uid(&pod), pod.clone());
            arrivals.push((seen, pod));
        }
        arrivals.sort_by_cached_key(|(seen, pod)| (seen.clone(), model::pod::uid(pod)));
        for (_, pod) in arrivals {
            self.names.arrive(&pod);
        }
    }

    /// Keeps a set until the runtime is known.
    pub(crate) fn postpone(&mut self, set: SetPods) {
        self.early.insert(set.source, set);
    }

    /// Gives the postponed sets back.
    pub(crate) fn postponed(&mut self) -> impl Iterator<Item = SetPods> + use<> {
        std::mem::take(&mut self.early).into_values()
    }

    /// Puts a new full set in the place of the last one of its source.
    pub(crate) fn replace(&mut self, set: SetPods, now: Timestamp) -> News {
        let before = self.sets.remove(&set.source).unwrap_or_default();
        let merge = merge::merge(set.source.as_str(), &before, set.pods, now);
        if !set.provisional {
            self.delivered.insert(set.source);
        }
        self.sets.insert(set.source, merge.next);
        self.numbers.insert(set.source, set.number);
        News { changes: merge.changes, duplicates: merge.duplicates, before }
    }

    /// Whether changes can be made, or were made already.
    pub(crate) fn expects(&self, change: &ChangePods) -> Option<ChangesTaken> {
        match self.numbers.get(&change.source) {
            Some(number) if *number == change.number && *number != 0 => Some(ChangesTaken::Taken),
            Some(number) if *number == change.base && *number != 0 => None,
            _ => Some(ChangesTaken::SetNeeded),
        }
    }

    /// Makes changes in the set of a source.
    pub(crate) fn change(&mut self, change: ChangePods, now: Timestamp) -> News {
        let source = change.source;
        let pods = self.sets.entry(source).or_default();
        let mut news = News::default();
        for uid in change.gone {
            if let Some(pod) = pods.remove(&uid) {
                news.changes.push(Change::Remove(pod.clone()));
                news.before.insert(uid, pod);
            }
        }
        for pod in change.changed {
            let uid = model::pod::uid(&pod);
            let Some(change) = merge::compare_one(source.as_str(), pods.get(&uid), &pod, now) else { continue };
            news.before.extend(pods.insert(uid.clone(), change.pod().clone()).map(|before| (uid, before)));
            news.changes.push(change);
        }
        merge::sort_for_delivery(&mut news.changes);
        self.numbers.insert(source, change.number);
        news
    }

    /// Puts back what was known of one pod before its source's last word, and has the source say all again.
    pub(crate) fn undo(&mut self, source: Source, uid: PodUid, before: Option<&Arc<Pod>>) {
        self.numbers.remove(&source);
        let pods = self.sets.entry(source).or_default();
        match before {
            Some(pod) => pods.insert(uid, pod.clone()),
            None => pods.remove(&uid),
        };
    }

    /// A pod as it shall run: of what can be resized it has what is granted.
    pub(crate) fn pod(&self, uid: &PodUid) -> Option<&Arc<Pod>> {
        self.find(uid).map(|(_, pod)| pod)
    }

    /// As [`Self::pod`], and where it comes from.
    pub(crate) fn find(&self, uid: &PodUid) -> Option<(Source, &Arc<Pod>)> {
        let (source, pod) = self.as_told(uid)?;
        Some((source, self.allocations.get(uid).map_or(pod, |held| &held.acts_on)))
    }

    /// A pod as its source has it.
    pub(crate) fn wanted(&self, uid: &PodUid) -> Option<&Arc<Pod>> {
        self.as_told(uid).map(|(_, pod)| pod)
    }

    fn as_told(&self, uid: &PodUid) -> Option<(Source, &Arc<Pod>)> {
        self.sets.iter().find_map(|(source, pods)| Some((*source, pods.get(uid)?)))
    }

    /// Why a resize of the pod is not granted.
    pub(crate) fn pending(&self, uid: &PodUid) -> Option<PendingResize> {
        self.allocations.get(uid)?.pending.clone()
    }

    /// The pod was granted this.
    pub(crate) fn hold(&mut self, uid: &PodUid, allocation: Arc<Allocation>, what: Resizable) {
        if let Some(pod) = self.wanted(uid).cloned() {
            self.allocations.hold(&pod, allocation, what);
        }
    }

    /// Pods as they shall run.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PodUid, &Arc<Pod>)> {
        let acts_on = |(uid, pod)| (uid, self.allocations.get(uid).map_or(pod, |held| &held.acts_on));
        self.sets.values().flatten().map(acts_on)
    }

    /// Pods with what they have a claim on: what is being granted counts already, and what others make room for.
    pub(crate) fn claims(&self) -> impl Iterator<Item = (&PodUid, &Arc<Pod>)> {
        self.iter().map(|(uid, pod)| match self.allocations.get(uid).map(|held| &held.stage) {
            Some(Stage::Granting(claimed, _) | Stage::Preempting(claimed, _)) => (uid, claimed),
            _ => (uid, pod),
        })
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

    pub(crate) fn is_static_name(&self, full_name: &str) -> bool {
        self.names.arrivals_of(full_name).iter().any(|uid| self.pod(uid).is_some_and(|pod| model::pod::is_static(pod)))
    }

    pub(crate) fn has_delivered(&self, source: Source) -> bool {
        self.delivered.contains(&source)
    }

    /// Whether all these sources have delivered. Before that nothing unknown is touched.
    pub(crate) fn all_delivered(&self, sources: &BTreeSet<Source>) -> bool {
        sources.is_subset(&self.delivered)
    }

    /// How many sources have delivered.
    pub(crate) fn delivered(&self) -> usize {
        self.delivered.len()
    }

    /// Names of pods, and the order in which they came.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// A worker has this pod, whether it is desired or not.
    pub(crate) fn know(&mut self, pod: &Pod) {
        self.names.know(pod);
    }

    /// A pod of this name runs, whether it is desired or not.
    pub(crate) fn know_name(&mut self, uid: &PodUid, full_name: String) {
        self.names.know_name(uid, full_name);
    }

    pub(crate) fn arrive(&mut self, pod: &Pod) {
        self.names.arrive(pod);
    }

    /// Forgets when a pod came, unless it is desired again.
    pub(crate) fn leave(&mut self, uid: &PodUid) {
        if self.pod(uid).is_none() {
            self.names.forget(uid);
        }
    }
}
