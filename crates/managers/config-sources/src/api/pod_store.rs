//! The pod store: the API server's pods in the journal, so that they run on, restart, and start again after a reboot while
//! the server is away.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use model::PodUid;
use model::core::{Pod, PodStatus};
use model::json::Document;
use model::pod;
use ports::journal::{Journal, JournalError};

use super::boot::{self, LastContact};

const TABLE: &str = "api-pods/";

/// What is written down of each pod, as far as this life of the daemon knows.
#[derive(Debug, Default)]
pub(crate) struct StoredPods {
    lines: BTreeMap<PodUid, Line>,
}

/// What is known of one line.
#[derive(Debug, Default)]
struct Line {
    /// Of what is written there; 0: not known.
    digest: u64,
    /// The pod that was compared last: the very same one needs no second comparison.
    pod: Option<Arc<Pod>>,
}

/// A change of the store; `None` removes the pod.
pub(crate) type Change = (PodUid, Option<Vec<u8>>);

impl StoredPods {
    /// From what was read.
    pub(crate) fn of(pods: &[Arc<Pod>]) -> Self {
        let line = |p: &Arc<Pod>| (pod::uid(p), Line { digest: digest(p), pod: Some(p.clone()) });
        Self { lines: pods.iter().map(line).collect() }
    }

    /// Adds lines that could not be read: they are removed with the next set that does not have their pod.
    pub(crate) fn note_unreadable(&mut self, uids: Vec<PodUid>) {
        self.lines.extend(uids.into_iter().map(|uid| (uid, Line::default())));
    }

    /// What must be written so that the store holds these pods. Mirrors are left out: their static pods have manifests.
    pub(crate) fn changes<'a>(&mut self, pods: impl Iterator<Item = &'a Arc<Pod>>) -> Vec<Change> {
        let mut before = std::mem::take(&mut self.lines);
        let mut changes = Vec::new();
        for pod in pods.filter(|p| !pod::is_mirror(p)) {
            let uid = pod::uid(pod);
            let old = before.remove(&uid).unwrap_or_default();
            if old.pod.as_ref().is_some_and(|known| Arc::ptr_eq(known, pod)) {
                self.lines.insert(uid, old);
                continue;
            }
            let digest = digest(pod);
            if old.digest != digest
                && let Ok(bytes) = pod.to_json()
            {
                changes.push((uid.clone(), Some(bytes)));
            }
            self.lines.insert(uid, Line { digest, pod: Some(pod.clone()) });
        }
        changes.extend(before.into_keys().map(|uid| (uid, None)));
        changes
    }

    /// A write failed: the next set tries again.
    pub(crate) fn forget(&mut self, uid: &PodUid) {
        self.lines.insert(uid.clone(), Line::default());
    }
}

/// Tells states apart that are worth a write: status only by what a pod goes on from, not by every step of it.
fn digest(pod: &Pod) -> u64 {
    let mut kept = pod.clone();
    kept.metadata.resource_version = None;
    let status = kept.status.take().unwrap_or_default();
    let ready = status.conditions.iter().flatten().find(|c| c.type_ == "Ready").map(|c| c.status.clone());
    kept.status = Some(PodStatus { phase: status.phase, start_time: status.start_time, ..PodStatus::default() });
    let mut hasher = DefaultHasher::new();
    (kept.to_json().unwrap_or_default(), ready).hash(&mut hasher);
    hasher.finish()
}

/// What the journal held.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) pods: Vec<Arc<Pod>>,
    /// Lines that are damaged.
    pub(crate) unreadable: Vec<PodUid>,
    /// When the server answered last.
    pub(crate) last_contact: Option<LastContact>,
}

/// Reads the store. Blocks. An error is the journal's, and passes; what is wrong with a line is in the answer.
pub(crate) fn load(journal: &dyn Journal) -> Result<Loaded, JournalError> {
    let mut loaded = Loaded { last_contact: boot::load(journal)?, ..Loaded::default() };
    for key in journal.keys(TABLE)? {
        let uid = PodUid::from(key.strip_prefix(TABLE).unwrap_or_default());
        let Some(bytes) = journal.load(&key)? else { continue };
        match decode(&bytes, &uid) {
            Ok(pod) => loaded.pods.push(Arc::new(pod)),
            Err(reason) => {
                tracing::warn!(%uid, reason, "entry of the pod store is damaged, skipped");
                loaded.unreadable.push(uid);
            }
        }
    }
    Ok(loaded)
}

fn decode(bytes: &[u8], uid: &PodUid) -> Result<Pod, String> {
    let stored = Pod::from_json(bytes).map_err(|e| e.to_string())?;
    let is_valid = pod::uid(&stored) == *uid && !pod::name(&stored).is_empty() && stored.spec.is_some();
    if is_valid { Ok(stored) } else { Err("it is not the pod of its key".to_owned()) }
}

/// A change that is not written, and why.
pub(crate) type Failed = (PodUid, String);

/// Carries changes out. Blocks. Gives those that failed.
pub(crate) fn write(journal: &dyn Journal, changes: Vec<Change>) -> Vec<Failed> {
    let one = |(uid, bytes): Change| {
        let key = format!("{TABLE}{uid}");
        let done = match bytes {
            Some(bytes) => journal.save(&key, &bytes),
            None => journal.remove(&key),
        };
        done.err().map(|error| (uid, error.to_string()))
    };
    changes.into_iter().filter_map(one).collect()
}

/// None of `changes` counts as written: how many were is not known.
pub(crate) fn all_failed(changes: &[Change], why: &str) -> Vec<Failed> {
    changes.iter().map(|(uid, _)| (uid.clone(), why.to_owned())).collect()
}
