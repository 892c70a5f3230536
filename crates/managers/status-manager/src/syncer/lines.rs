//! Lines of the journal that are to be written: one batch at a time; of several changes of a line the latest counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use actor::{Class, Effects, WorkPanicked};
use contract::status::StatusEntry;
use model::PodUid;
use ports::journal::Journal;

use crate::journal;

/// What is to be done with a line.
#[derive(Clone, Debug)]
pub(super) enum LineChange {
    Save(Arc<StatusEntry>),
    Remove,
}

/// A change that was not written, and why.
pub(super) type Unwritten = (PodUid, LineChange, String);

/// Changes that wait to be written.
#[derive(Debug, Default)]
pub(super) struct PendingLines {
    changes: BTreeMap<PodUid, LineChange>,
    writing: bool,
}

impl PendingLines {
    pub(super) fn save(&mut self, uid: PodUid, entry: Arc<StatusEntry>) {
        self.changes.insert(uid, LineChange::Save(entry));
    }

    pub(super) fn remove(&mut self, uid: PodUid) {
        self.changes.insert(uid, LineChange::Remove);
    }

    /// The next batch, unless one is being written or there is nothing to write.
    pub(super) fn next_batch(&mut self) -> Option<BTreeMap<PodUid, LineChange>> {
        if self.writing || self.changes.is_empty() {
            return None;
        }
        self.writing = true;
        Some(std::mem::take(&mut self.changes))
    }

    /// The batch has been written but for some changes, which are to be tried again.
    pub(super) fn written(&mut self, unwritten: Vec<Unwritten>) {
        self.writing = false;
        if let Some((uid, _, error)) = unwritten.first() {
            tracing::warn!(%uid, error, count = unwritten.len(), "statuses that wait for the API server are not written down");
        }
        for (uid, change, _) in unwritten {
            // A newer change of the line goes before.
            self.changes.entry(uid).or_insert(change);
        }
    }
}

/// Writes a batch; gives what could not be written.
pub(super) async fn write(
    batch: BTreeMap<PodUid, LineChange>,
    journal: Arc<dyn Journal>,
    effects: Effects,
) -> Vec<Unwritten> {
    effects.hit("journal").await;
    let copy = batch.clone();
    let write = move || write_all(&*journal, batch);
    // A write that panicked is not a write.
    let all = |e: WorkPanicked| copy.into_iter().map(|(uid, change)| (uid, change, e.to_string())).collect();
    effects.attempt(Class::Journal, write).await.unwrap_or_else(all)
}

/// In one commit at most: that of the last save, which takes along what was put before. A line whose removal is lost tells of a
/// status that the API server has.
fn write_all(journal: &dyn Journal, batch: BTreeMap<PodUid, LineChange>) -> Vec<Unwritten> {
    let mut saves = Vec::new();
    for (uid, change) in batch {
        match change {
            LineChange::Save(entry) => saves.push((uid, entry)),
            LineChange::Remove => journal::forget(journal, &uid),
        }
    }
    match journal::save_all(journal, &saves) {
        Ok(()) => Vec::new(),
        Err(e) => saves.into_iter().map(|(uid, entry)| (uid, LineChange::Save(entry), e.to_string())).collect(),
    }
}
