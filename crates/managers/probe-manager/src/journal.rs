//! Verdicts on disk: one small text per container instance.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::ContainerId;
use model::probe::{ProbeKind, ProbeVerdict};
use ports::journal::{Journal, JournalError};

const TABLE: &str = "probe/";

/// Verdicts of an earlier life of the daemon.
pub(crate) type Kept = BTreeMap<ContainerId, BTreeMap<ProbeKind, ProbeVerdict>>;

/// Writes that wait for the one in flight. A later write to a key replaces an earlier one.
#[derive(Default)]
pub(crate) struct Writes {
    pending: BTreeMap<String, Option<Vec<u8>>>,
    writing: bool,
}

impl Writes {
    pub(crate) fn save(&mut self, id: &ContainerId, verdicts: impl Iterator<Item = (ProbeKind, ProbeVerdict)>) {
        self.pending.insert(key(id), Some(encode(verdicts)));
    }

    pub(crate) fn remove(&mut self, id: &ContainerId) {
        self.pending.insert(key(id), None);
    }

    /// The batch to write next, unless one is being written.
    pub(crate) fn next_batch(&mut self) -> Option<BTreeMap<String, Option<Vec<u8>>>> {
        if self.writing || self.pending.is_empty() {
            return None;
        }
        self.writing = true;
        Some(std::mem::take(&mut self.pending))
    }

    pub(crate) fn written(&mut self) {
        self.writing = false;
    }
}

fn key(id: &ContainerId) -> String {
    format!("{TABLE}{id}")
}

/// Blocks; gives the first failure after having tried all.
pub(crate) fn write(journal: &dyn Journal, batch: BTreeMap<String, Option<Vec<u8>>>) -> Result<(), JournalError> {
    let mut outcome = Ok(());
    for (key, value) in batch {
        let done = match value {
            Some(value) => journal.save(&key, &value),
            None => journal.remove(&key),
        };
        outcome = outcome.and(done);
    }
    outcome
}

/// Blocks. Text that is no verdict is left out.
pub(crate) fn load(journal: &Arc<dyn Journal>) -> Result<Kept, JournalError> {
    let mut kept = Kept::new();
    for key in journal.keys(TABLE)? {
        let Some(id) = key.strip_prefix(TABLE) else { continue };
        if let Some(value) = journal.load(&key)? {
            kept.insert(id.into(), decode(&value));
        }
    }
    Ok(kept)
}

fn encode(verdicts: impl Iterator<Item = (ProbeKind, ProbeVerdict)>) -> Vec<u8> {
    verdicts
        .flat_map(|(kind, verdict)| {
            let kind = match kind {
                ProbeKind::Startup => b's',
                ProbeKind::Readiness => b'r',
                ProbeKind::Liveness => b'l',
            };
            let verdict = match verdict {
                ProbeVerdict::Unknown => b'?',
                ProbeVerdict::Success => b'+',
                ProbeVerdict::Failure => b'-',
            };
            [kind, verdict]
        })
        .collect()
}

fn decode(text: &[u8]) -> BTreeMap<ProbeKind, ProbeVerdict> {
    text.chunks_exact(2)
        .filter_map(|pair| {
            let kind = match pair[0] {
                b's' => ProbeKind::Startup,
                b'r' => ProbeKind::Readiness,
                b'l' => ProbeKind::Liveness,
                _ => return None,
            };
            let verdict = match pair[1] {
                b'?' => ProbeVerdict::Unknown,
                b'+' => ProbeVerdict::Success,
                b'-' => ProbeVerdict::Failure,
                _ => return None,
            };
            Some((kind, verdict))
        })
        .collect()
}
