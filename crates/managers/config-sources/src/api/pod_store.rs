//! The pod store: the API server's pods in the journal, so that they run on, restart, and start again after a reboot while
//! the server is away.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::PodUid;
use model::core::Pod;
use model::json::{FromJson, ToJson};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use model::pod;
use ports::journal::{Journal, JournalError};

use super::boot::{self, LastContact};

const TABLE: &str = "api-pods/";

/// What is written down of each pod, as far as this life of the daemon knows.
#[derive(Debug, Default)]
pub(crate) struct StoredPods {
    /// `None`: what the line holds is not known.
    lines: BTreeMap<PodUid, Option<Arc<Pod>>>,
}

/// A change of the store; `None` removes the pod.
pub(crate) type Change = (PodUid, Option<Vec<u8>>);

/// What must be written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Pods that came, specs and metadata: on disk before the next batch.
    pub(crate) at_once: Vec<Change>,
    /// What the server tells again: only a status changed, or the pod has gone. Written behind.
    pub(crate) behind: Vec<Change>,
}

impl StoredPods {
    /// From what was read.
    pub(crate) fn of(pods: &[Arc<Pod>]) -> Self {
        Self { lines: pods.iter().map(|p| (pod::uid(p), Some(p.clone()))).collect() }
    }

    /// Adds lines that could not be read: they are removed with the next set that does not have their pod.
    pub(crate) fn note_unreadable(&mut self, uids: Vec<PodUid>) {
        self.lines.extend(uids.into_iter().map(|uid| (uid, None)));
    }

    /// What must be written so that the store holds these pods and no others.
    pub(crate) fn replace<'a>(&mut self, pods: impl Iterator<Item = &'a Arc<Pod>>) -> Changes {
        let mut all: BTreeMap<PodUid, Option<Arc<Pod>>> = self.lines.keys().map(|uid| (uid.clone(), None)).collect();
        all.extend(pods.map(|pod| (pod::uid(pod), Some(pod.clone()))));
        self.change(&all)
    }

    /// What must be written after these pods changed. Mirrors are left out: their static pods have manifests.
    pub(crate) fn change(&mut self, pods: &BTreeMap<PodUid, Option<Arc<Pod>>>) -> Changes {
        let mut changes = Changes::default();
        for (uid, pod) in pods {
            let Some(pod) = pod.as_ref().filter(|pod| !pod::is_mirror(pod)) else {
                changes.behind.extend(self.lines.remove(uid).map(|_| (uid.clone(), None)));
                continue;
            };
            let before = self.lines.insert(uid.clone(), Some(pod.clone())).flatten();
            let differs = before.map_or(Differs::Whole, |before| compare(&before, pod));
            let Some(bytes) = (differs != Differs::No).then(|| pod.to_json().ok()).flatten() else { continue };
            match differs {
                Differs::Status => changes.behind.push((uid.clone(), Some(bytes))),
                _ => changes.at_once.push((uid.clone(), Some(bytes))),
            }
        }
        changes
    }

    /// A write failed: the next set tries again.
    pub(crate) fn forget(&mut self, uid: &PodUid) {
        self.lines.insert(uid.clone(), None);
    }
}

/// What must be written anew of a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Differs {
    No,
    Status,
    Whole,
}

/// Of the status only what a pod goes on from counts, not every step of it.
fn compare(a: &Arc<Pod>, b: &Arc<Pod>) -> Differs {
    let same_metadata = || {
        let resource_version = b.metadata.resource_version.clone();
        ObjectMeta { resource_version, ..a.metadata.clone() } == b.metadata
    };
    if Arc::ptr_eq(a, b) {
        Differs::No
    } else if a.spec != b.spec || !same_metadata() {
        Differs::Whole
    } else if kept_status(a) != kept_status(b) {
        Differs::Status
    } else {
        Differs::No
    }
}

/// Phase, start, and the word of the Ready condition.
fn kept_status(pod: &Pod) -> (Option<&str>, Option<&Time>, Option<&str>) {
    let Some(status) = &pod.status else { return (None, None, None) };
    let ready = status.conditions.iter().flatten().find(|c| c.type_ == "Ready");
    (status.phase.as_deref(), status.start_time.as_ref(), ready.map(|c| c.status.as_str()))
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

/// The line of a pod.
pub(crate) fn key(uid: &PodUid) -> String {
    format!("{TABLE}{uid}")
}

/// A change that is not written, and why.
pub(crate) type Failed = (PodUid, String);

/// Carries changes out, in one commit of the journal: it takes along what was put there before. Blocks. Gives those that failed.
pub(crate) fn write(journal: &dyn Journal, mut changes: Vec<Change>) -> Vec<Failed> {
    let Some((uid, bytes)) = changes.pop() else { return Vec::new() };
    for (uid, bytes) in &changes {
        journal.put_soon(&key(uid), bytes.clone());
    }
    let done = match &bytes {
        Some(bytes) => journal.save(&key(&uid), bytes),
        None => journal.remove(&key(&uid)),
    };
    changes.push((uid, bytes));
    done.err().map(|error| all_failed(&changes, &error.to_string())).unwrap_or_default()
}

/// None of `changes` counts as written: how many were is not known.
pub(crate) fn all_failed(changes: &[Change], why: &str) -> Vec<Failed> {
    changes.iter().map(|(uid, _)| (uid.clone(), why.to_owned())).collect()
}
