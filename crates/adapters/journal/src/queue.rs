//! What is to be written: changes that somebody waits for, and lines that are written behind.

use std::collections::BTreeMap;

use crate::file::Change;

/// Lines written behind that may wait at most; there are a few per pod, so more is a disk that takes nothing for long.
const MOST: usize = 8192;

/// Group commit: one writer commits for all who wait, and takes along what nobody waits for.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    changes: Vec<(u64, Change)>,
    /// Written behind, with the number of the change; not on disk yet.
    soon: BTreeMap<String, (u64, Option<Vec<u8>>)>,
    /// Numbers changes: on disk the latest of a line counts.
    next: u64,
    /// Somebody comes to write the lines behind.
    pub(crate) arranged: bool,
    /// Number of the batch that is being collected.
    pub(crate) batch: u64,
    /// Batches before this one are done.
    pub(crate) done: u64,
    /// Somebody is committing.
    pub(crate) busy: bool,
    /// Failures of batches whose waiters may still ask.
    pub(crate) failed: BTreeMap<u64, String>,
}

/// What is committed in one go.
pub(crate) struct Batch {
    pub(crate) number: u64,
    pub(crate) changes: Vec<Change>,
    /// Lines behind up to this number are in it.
    upto: u64,
}

impl Queue {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn push(&mut self, change: Change) {
        let number = self.number();
        self.changes.push((number, change));
    }

    /// False: there are too many.
    pub(crate) fn push_soon(&mut self, key: &str, value: Option<Vec<u8>>) -> bool {
        if self.soon.len() >= MOST && !self.soon.contains_key(key) {
            return false;
        }
        let number = self.number();
        self.soon.insert(key.to_owned(), (number, value));
        true
    }

    /// The line as it will be.
    pub(crate) fn soon(&self, key: &str) -> Option<Option<Vec<u8>>> {
        self.soon.get(key).map(|(_, value)| value.clone())
    }

    /// Lines that begin with `prefix`, and whether they will be there.
    pub(crate) fn soon_keys(&self, prefix: &str) -> BTreeMap<String, bool> {
        let from = self.soon.range(prefix.to_owned()..).take_while(|(key, _)| key.starts_with(prefix));
        from.map(|(key, (_, value))| (key.clone(), value.is_some())).collect()
    }

    pub(crate) fn has_soon(&self) -> bool {
        !self.soon.is_empty()
    }

    /// All that waits, in the order in which it came.
    pub(crate) fn take(&mut self) -> Batch {
        let mut all = std::mem::take(&mut self.changes);
        all.extend(self.soon.iter().map(|(key, (number, value))| (*number, (key.clone(), value.clone()))));
        all.sort_by_key(|(number, _)| *number);
        let batch =
            Batch { number: self.batch, changes: all.into_iter().map(|(_, change)| change).collect(), upto: self.next };
        self.batch += 1;
        batch
    }

    /// Notes how it went. Lines behind that could not be written stay.
    pub(crate) fn settle(&mut self, batch: &Batch, outcome: Result<(), String>) {
        self.done = batch.number + 1;
        match outcome {
            Ok(()) => self.soon.retain(|_, (number, _)| *number > batch.upto),
            Err(e) => drop(self.failed.insert(batch.number, e)),
        }
        // Whoever waited for a batch this old has long been answered.
        self.failed.retain(|b, _| b + 1000 > batch.number);
    }
}
