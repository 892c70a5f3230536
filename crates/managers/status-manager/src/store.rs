//! What the actor remembers, and every decision about it. No clock, no board.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contract::status::StatusEntry;
use model::core::{Pod, PodStatus};
use model::{PodUid, Timestamp, pod};
use pod_status::patch;
use pod_status::store::{IllegalTransition, check_transition, same_for_node, settle};

#[cfg(test)]
mod tests;

/// What came of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A new version, to be posted.
    Stored(Arc<StatusEntry>),
    /// It says nothing new.
    Unchanged,
    /// A container would leave a state that is final; the whole update is dropped.
    Refused(IllegalTransition),
}

/// Versioned statuses by pod.
#[derive(Debug, Default)]
pub struct Statuses {
    entries: BTreeMap<PodUid, Arc<StatusEntry>>,
    /// No version of a new entry is at or below this: a static pod comes back under the UID that it had.
    floor: u64,
}

impl Statuses {
    /// Takes over what was published before.
    #[must_use]
    pub fn recovered(entries: BTreeMap<PodUid, Arc<StatusEntry>>) -> Self {
        let floor = entries.values().map(|e| e.version).max().unwrap_or(0);
        Self { entries, floor }
    }

    /// Takes over what an earlier life of the daemon wrote down; `false`: there is a status already.
    pub fn restore(&mut self, uid: &PodUid, entry: &Arc<StatusEntry>) -> bool {
        self.floor = self.floor.max(entry.version);
        if self.entries.contains_key(uid) {
            return false;
        }
        self.entries.insert(uid.clone(), entry.clone());
        true
    }

    /// Pods that have a status.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no pod has a status.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Stores a status that a worker computed, or that says why there is no worker.
    pub fn set(&mut self, pod: &Pod, status: PodStatus, now: Timestamp) -> Outcome {
        self.update(pod, status, false, now)
    }

    /// Closes every container state that is still open and marks the status finished (pod-lifecycle 9.9).
    pub fn terminate(&mut self, pod: &Pod, now: Timestamp) -> Outcome {
        let held = self.entries.get(&pod::uid(pod)).map(|e| &*e.status);
        let nothing = PodStatus::default();
        let status = patch::terminated(pod, held.or(pod.status.as_ref()).unwrap_or(&nothing));
        self.update(pod, status, true, now)
    }

    /// Drops all other pods; gives those dropped.
    pub fn retain(&mut self, known: &BTreeSet<PodUid>) -> Vec<PodUid> {
        let gone: Vec<PodUid> = self.entries.keys().filter(|uid| !known.contains(*uid)).cloned().collect();
        for uid in &gone {
            if let Some(entry) = self.entries.remove(uid) {
                self.floor = self.floor.max(entry.version);
            }
        }
        gone
    }

    fn update(&mut self, pod: &Pod, status: PodStatus, finished: bool, now: Timestamp) -> Outcome {
        let uid = pod::uid(pod);
        let held = self.entries.get(&uid);
        let old = held.map(|e| &*e.status).or(pod.status.as_ref());
        // A static pod that had ended may come back under the same UID and run again.
        let second_life = pod::is_static(pod) && !finished && held.is_some_and(|e| e.finished);
        if let Some(old) = old
            && !second_life
            && let Err(illegal) = check_transition(pod, old, &status)
        {
            return Outcome::Refused(illegal);
        }
        let status = settle(pod, status, old, now);
        let finished = finished || (!pod::is_static(pod) && held.is_some_and(|e| e.finished));
        if held.is_some_and(|e| e.finished == finished && same_for_node(&e.status, &status)) {
            return Outcome::Unchanged;
        }
        let version = held.map_or(self.floor, |e| e.version) + 1;
        let entry = Arc::new(StatusEntry {
            version,
            namespace: pod::namespace(pod).to_owned(),
            name: pod::name(pod).to_owned(),
            status: Arc::new(status),
            finished,
            changed_at: now,
        });
        self.entries.insert(uid, entry.clone());
        Outcome::Stored(entry)
    }
}
