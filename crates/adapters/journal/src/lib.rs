//! The journal on disk: one redb file, every write durable when it returns. Writes that come together share one commit, which takes
//! along what is written behind.
//!
//! After an I/O error redb refuses everything until the file is opened anew: that is done here, at once and then once a
//! second, so that a disk that was full or away for a while costs no more than the writes of that while. Only a file that
//! is damaged is set aside (`<file>.damaged`, never over an earlier one) and a fresh one begun: what it held is worth less
//! than a node that runs. Never holds more than a few kilobytes per pod.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use ports::journal::{Journal, JournalError};
use redb::{Database, ReadableDatabase};

mod file;
mod queue;
#[cfg(test)]
mod tests;

use file::{Change, DbFile, LINES, commit};
use queue::Queue;

/// How long a line that is written behind waits for company.
const SOON: Duration = Duration::from_millis(200);
/// And for the next try, when the journal cannot be written.
const AGAIN: Duration = Duration::from_secs(10);

/// A journal in a redb file.
pub struct RedbJournal {
    file: DbFile,
    path: PathBuf,
    queue: Mutex<Queue>,
    committed: Condvar,
    flush_after: OnceLock<Box<dyn Fn(Duration) + Send + Sync>>,
}

impl std::fmt::Debug for RedbJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedbJournal").field("path", &self.path).finish_non_exhaustive()
    }
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
        let (queue, committed, flush_after) = (Mutex::default(), Condvar::new(), OnceLock::new());
        let journal = Self { file, path: path.to_owned(), queue, committed, flush_after };
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

    /// Has lines that are written behind come to disk: `arrange` is called when there are some, and sees to it that
    /// [`Self::flush`] is called after that time, on a thread that may block. It must not block itself. Counts once; without it
    /// they wait for the next write that somebody waits for, or for the end.
    pub fn flush_by(&self, arrange: impl Fn(Duration) + Send + Sync + 'static) {
        let _ = self.flush_after.set(Box::new(arrange));
    }

    /// Writes the lines behind. Blocks.
    pub fn flush(&self) {
        let mut queue = self.queue();
        queue.arranged = false;
        if !queue.has_soon() {
            return;
        }
        drop(queue);
        if let Err(error) = self.write(None) {
            tracing::warn!(%error, "journal lines are not written yet, trying again");
        }
        let queue = self.queue();
        if queue.has_soon() {
            self.arrange(queue, AGAIN);
        }
    }

    fn arrange(&self, mut queue: MutexGuard<'_, Queue>, after: Duration) {
        let Some(flush_after) = self.flush_after.get() else { return };
        if !std::mem::replace(&mut queue.arranged, true) {
            drop(queue);
            flush_after(after);
        }
    }

    /// Queues a change and returns when it is on disk: the first to come commits for all who came meanwhile.
    fn write(&self, change: Option<Change>) -> Result<(), JournalError> {
        let mut queue = self.queue();
        let mine = queue.batch;
        if let Some(change) = change {
            queue.push(change);
        }
        while queue.done <= mine {
            if queue.busy {
                queue = self.committed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.busy = true;
            let batch = queue.take();
            drop(queue);
            // Never unwinds: the writers who wait would wait for ever.
            let outcome = self.file.run(&|db| commit(db, &batch.changes));
            queue = self.queue();
            queue.busy = false;
            queue.settle(&batch, outcome.map_err(|e| e.to_string()));
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
        if let Some(value) = self.queue().soon(key) {
            return Ok(value);
        }
        self.read(|db| {
            let found = db.begin_read()?.open_table(LINES)?.get(key)?;
            Ok(found.map(|v| v.value().to_vec()))
        })
    }

    fn save(&self, key: &str, value: &[u8]) -> Result<(), JournalError> {
        self.write(Some((key.to_owned(), Some(value.to_vec()))))
    }

    fn remove(&self, key: &str) -> Result<(), JournalError> {
        self.write(Some((key.to_owned(), None)))
    }

    fn put_soon(&self, key: &str, value: Option<Vec<u8>>) {
        let mut queue = self.queue();
        if !queue.push_soon(key, value) {
            tracing::warn!(key, "journal line is dropped: too many wait for the disk");
            return;
        }
        self.arrange(queue, SOON);
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, JournalError> {
        // First: what is written meanwhile is found in the file.
        let soon = self.queue().soon_keys(prefix);
        let mut keys: BTreeSet<String> = self.read(|db| {
            let mut out = BTreeSet::new();
            for line in db.begin_read()?.open_table(LINES)?.range(prefix..)? {
                let (key, _) = line?;
                if !key.value().starts_with(prefix) {
                    break;
                }
                out.insert(key.value().to_owned());
            }
            Ok(out)
        })?;
        for (key, there) in soon {
            if there {
                keys.insert(key);
            } else {
                keys.remove(&key);
            }
        }
        Ok(keys.into_iter().collect())
    }
}

impl Drop for RedbJournal {
    fn drop(&mut self) {
        if self.queue().has_soon() {
            // Nobody can be told any more; what fails is logged.
            self.flush();
        }
    }
}
