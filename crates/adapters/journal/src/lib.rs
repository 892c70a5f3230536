//! The journal on disk: one redb file, every write durable when it returns. Writes that come together share one commit.
//!
//! After an I/O error redb refuses everything until the file is opened anew: that is done here, at once and then once a
//! second, so that a disk that was full or away for a while costs no more than the writes of that while. Only a file that
//! is damaged is set aside (`<file>.damaged`, never over an earlier one) and a fresh one begun: what it held is worth less
//! than a node that runs. Never holds more than a few kilobytes per pod.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ports::journal::{Journal, JournalError};
use redb::{Database, ReadableDatabase};

mod file;
#[cfg(test)]
mod tests;

use file::{Change, DbFile, LINES, commit};

/// A journal in a redb file.
#[derive(Debug)]
pub struct RedbJournal {
    file: DbFile,
    path: PathBuf,
    queue: Mutex<Queue>,
    committed: Condvar,
}

/// Group commit: one writer commits for all who wait.
#[derive(Debug, Default)]
struct Queue {
    changes: Vec<Change>,
    /// Number of the batch that is being collected.
    batch: u64,
    /// Batches before this one are done.
    done: u64,
    /// Somebody is committing.
    busy: bool,
    /// Failures of batches whose waiters may still ask.
    failed: BTreeMap<u64, String>,
}

impl RedbJournal {
    /// Opens the journal, or begins one. A file that cannot be read or written now (disk full, I/O error) is no failure:
    /// calls fail until it can be.
    ///
    /// # Errors
    /// Another process holds the file, or its folder is not there.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        Self::on(DbFile::new(path), path)
    }

    fn on(file: DbFile, path: &Path) -> Result<Self, JournalError> {
        let journal = Self { file, path: path.to_owned(), queue: Mutex::default(), committed: Condvar::new() };
        match journal.file.open() {
            Ok(()) => {}
            Err(e) if e.ends_the_daemon() => return Err(journal.error(e)),
            Err(e) => {
                tracing::error!(path = %path.display(), error = %e, "journal cannot be opened now, trying again later");
            }
        }
        Ok(journal)
    }

    fn error(&self, e: impl std::fmt::Display) -> JournalError {
        JournalError { message: format!("{}: {e}", self.path.display()) }
    }

    fn read<T>(&self, op: impl Fn(&Database) -> Result<T, redb::Error>) -> Result<T, JournalError> {
        self.file.run(&op).map_err(|e| self.error(e))
    }

    /// Queues a change and returns when it is on disk: the first to come commits for all who came meanwhile.
    fn write(&self, change: Change) -> Result<(), JournalError> {
        let mut queue = self.queue();
        let mine = queue.batch;
        queue.changes.push(change);
        while queue.done <= mine {
            if queue.busy {
                queue = self.committed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.busy = true;
            let batch = queue.batch;
            let changes = std::mem::take(&mut queue.changes);
            queue.batch += 1;
            drop(queue);
            // Never unwinds: the writers who wait would wait for ever.
            let outcome = self.file.run(&|db| commit(db, &changes));
            queue = self.queue();
            queue.busy = false;
            queue.done = batch + 1;
            if let Err(e) = outcome {
                queue.failed.insert(batch, e.to_string());
            }
            // Whoever waited for a batch this old has long been answered.
            queue.failed.retain(|b, _| b + 1000 > batch);
            self.committed.notify_all();
        }
        match queue.failed.get(&mine) {
            None => Ok(()),
            Some(e) => Err(self.error(e)),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for RedbJournal {
    fn load(&self, key: &str) -> Result<Option<Vec<u8>>, JournalError> {
        self.read(|db| {
            let found = db.begin_read()?.open_table(LINES)?.get(key)?;
            Ok(found.map(|v| v.value().to_vec()))
        })
    }

    fn save(&self, key: &str, value: &[u8]) -> Result<(), JournalError> {
        self.write((key.to_owned(), Some(value.to_vec())))
    }

    fn remove(&self, key: &str) -> Result<(), JournalError> {
        self.write((key.to_owned(), None))
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, JournalError> {
        self.read(|db| {
            let mut out = Vec::new();
            for line in db.begin_read()?.open_table(LINES)?.range(prefix..)? {
                let (key, _) = line?;
                if !key.value().starts_with(prefix) {
                    break;
                }
                out.push(key.value().to_owned());
            }
            Ok(out)
        })
    }
}
