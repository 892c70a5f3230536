//! Lines of statuses that the API server has not taken yet. They outlive the daemon: an exit code is seen once.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::status::StatusEntry;
use model::core::PodStatus;
use model::{PodUid, Timestamp};
use ports::journal::{Journal, JournalError};
use serde::{Deserialize, Serialize};

const TABLE: &str = "status/";

#[derive(Serialize, Deserialize)]
struct Line {
    version: u64,
    namespace: String,
    name: String,
    finished: bool,
    changed_ns: i64,
    status: PodStatus,
}

fn key(uid: &PodUid) -> String {
    format!("{TABLE}{uid}")
}

/// Reads all lines. Blocks. A line that cannot be read is reported, removed and left out: its pod is looked at afresh.
pub(crate) fn load(journal: &dyn Journal) -> BTreeMap<PodUid, Arc<StatusEntry>> {
    let keys = match journal.keys(TABLE) {
        Ok(keys) => keys,
        Err(error) => {
            tracing::warn!(%error, "journal of statuses cannot be read");
            return BTreeMap::new();
        }
    };
    keys.iter().filter_map(|key| Some((PodUid::from(key.strip_prefix(TABLE)?), read(journal, key)?))).collect()
}

fn read(journal: &dyn Journal, key: &str) -> Option<Arc<StatusEntry>> {
    let bytes = match journal.load(key) {
        Ok(bytes) => bytes?,
        Err(error) => {
            tracing::warn!(key, %error, "line of a status cannot be read");
            return None;
        }
    };
    match serde_json::from_slice::<Line>(&bytes) {
        Ok(line) => Some(Arc::new(StatusEntry {
            version: line.version,
            namespace: line.namespace,
            name: line.name,
            status: Arc::new(line.status),
            finished: line.finished,
            changed_at: Timestamp(line.changed_ns),
        })),
        Err(error) => {
            tracing::warn!(key, %error, "line of a status is damaged, dropped");
            if let Err(error) = journal.remove(key) {
                tracing::warn!(key, %error, "line of a status cannot be removed");
            }
            None
        }
    }
}

fn line(entry: &StatusEntry) -> Result<Vec<u8>, JournalError> {
    let line = Line {
        version: entry.version,
        namespace: entry.namespace.clone(),
        name: entry.name.clone(),
        finished: entry.finished,
        changed_ns: entry.changed_at.0,
        status: (*entry.status).clone(),
    };
    serde_json::to_vec(&line).map_err(|e| JournalError { message: e.to_string() })
}

/// Writes the lines of pods, all of them or none. Blocks.
pub(crate) fn save_all(journal: &dyn Journal, entries: &[(PodUid, Arc<StatusEntry>)]) -> Result<(), JournalError> {
    let Some(((last, entry), others)) = entries.split_last() else { return Ok(()) };
    for (uid, entry) in others {
        journal.put_soon(&key(uid), Some(line(entry)?));
    }
    journal.save(&key(last), &line(entry)?)
}

/// Removes the line of a pod, soon. Does not block.
pub(crate) fn forget(journal: &dyn Journal, uid: &PodUid) {
    journal.put_soon(&key(uid), None);
}
