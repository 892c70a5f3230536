//! The journal on disk: one redb file, every write durable when it returns. Writes that come together share one commit.
//!
//! A damaged file is set aside (`<file>.damaged`) and a fresh one begun: what it held is worth less than a node that runs.
//! Never holds more than a few kilobytes per pod.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ports::journal::{Journal, JournalError};
use redb::{Database, ReadableDatabase, TableDefinition};

const LINES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("lines");
/// Page cache; the journal is small and rarely read.
const CACHE_BYTES: usize = 256 << 10;

/// A journal in a redb file.
#[derive(Debug)]
pub struct RedbJournal {
    db: Database,
    path: PathBuf,
    queue: Mutex<Queue>,
    committed: Condvar,
}

/// A line to write; `None` removes it.
type Change = (String, Option<Vec<u8>>);

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
    failed: BTreeMap<u64, JournalError>,
}

impl RedbJournal {
    /// Opens the journal, or begins one.
    ///
    /// # Errors
    /// Another process holds the file, or the folder cannot be written.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let open = || Database::builder().set_cache_size(CACHE_BYTES).create(path);
        let db = match open() {
            Ok(db) => db,
            Err(redb::DatabaseError::DatabaseAlreadyOpen) => {
                return Err(error(path, "another process has it open (is a second bosun running on this root dir?)"));
            }
            Err(e @ redb::DatabaseError::Storage(redb::StorageError::Io(_))) if !path.exists() => {
                return Err(error(path, e));
            }
            Err(e) => {
                let aside = path.with_extension("damaged");
                tracing::error!(path = %path.display(), error = %e, aside = %aside.display(), "journal is damaged, set aside");
                std::fs::rename(path, &aside).map_err(|e| error(path, e))?;
                open().map_err(|e| error(path, e))?
            }
        };
        let journal =
            Self { db, path: path.to_owned(), queue: Mutex::new(Queue::default()), committed: Condvar::new() };
        journal.commit(&[])?;
        Ok(journal)
    }

    fn commit(&self, changes: &[Change]) -> Result<(), JournalError> {
        let tx = self.db.begin_write().map_err(|e| error(&self.path, e))?;
        {
            let mut table = tx.open_table(LINES).map_err(|e| error(&self.path, e))?;
            for (key, value) in changes {
                let done = match value {
                    Some(value) => table.insert(key.as_str(), value.as_slice()).map(drop),
                    None => table.remove(key.as_str()).map(drop),
                };
                done.map_err(|e| error(&self.path, e))?;
            }
        }
        tx.commit().map_err(|e| error(&self.path, e))
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
            let outcome = self.commit(&changes);
            queue = self.queue();
            queue.busy = false;
            queue.done = batch + 1;
            if let Err(e) = outcome {
                queue.failed.insert(batch, e);
            }
            // Whoever waited for a batch this old has long been answered.
            queue.failed.retain(|b, _| b + 1000 > batch);
            self.committed.notify_all();
        }
        match queue.failed.get(&mine) {
            None => Ok(()),
            Some(e) => Err(JournalError { message: e.message.clone() }),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn error(path: &Path, e: impl std::fmt::Display) -> JournalError {
    JournalError { message: format!("{}: {e}", path.display()) }
}

impl Journal for RedbJournal {
    fn load(&self, key: &str) -> Result<Option<Vec<u8>>, JournalError> {
        let tx = self.db.begin_read().map_err(|e| error(&self.path, e))?;
        let table = tx.open_table(LINES).map_err(|e| error(&self.path, e))?;
        let found = table.get(key).map_err(|e| error(&self.path, e))?;
        Ok(found.map(|v| v.value().to_vec()))
    }

    fn save(&self, key: &str, value: &[u8]) -> Result<(), JournalError> {
        self.write((key.to_owned(), Some(value.to_vec())))
    }

    fn remove(&self, key: &str) -> Result<(), JournalError> {
        self.write((key.to_owned(), None))
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, JournalError> {
        let tx = self.db.begin_read().map_err(|e| error(&self.path, e))?;
        let table = tx.open_table(LINES).map_err(|e| error(&self.path, e))?;
        let mut out = Vec::new();
        for line in table.range(prefix..).map_err(|e| error(&self.path, e))? {
            let (key, _) = line.map_err(|e| error(&self.path, e))?;
            if !key.value().starts_with(prefix) {
                break;
            }
            out.push(key.value().to_owned());
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive_a_new_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.redb");
        {
            let j = RedbJournal::open(&path).unwrap();
            j.save("worker/b", b"2").unwrap();
            j.save("worker/a", b"1").unwrap();
            j.save("volume/a", b"3").unwrap();
            j.save("worker/a", b"1b").unwrap();
            j.remove("volume/a").unwrap();
            j.remove("volume/none").unwrap();
        }
        let j = RedbJournal::open(&path).unwrap();
        assert_eq!(j.load("worker/a").unwrap().as_deref(), Some(&b"1b"[..]));
        assert_eq!(j.load("volume/a").unwrap(), None);
        assert_eq!(j.keys("worker/").unwrap(), ["worker/a", "worker/b"]);
    }

    #[test]
    fn writes_of_many_threads_all_land() {
        let dir = tempfile::tempdir().unwrap();
        let j = RedbJournal::open(&dir.path().join("journal.redb")).unwrap();
        std::thread::scope(|s| {
            for i in 0..40 {
                let j = &j;
                s.spawn(move || j.save(&format!("worker/{i:02}"), b"x").unwrap());
            }
        });
        assert_eq!(j.keys("worker/").unwrap().len(), 40);
        assert!(j.queue().batch <= 40, "waiting writes share commits");
    }

    #[test]
    fn a_damaged_file_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.redb");
        std::fs::write(&path, vec![7u8; 8192]).unwrap();
        let j = RedbJournal::open(&path).unwrap();
        j.save("k", b"v").unwrap();
        assert!(dir.path().join("journal.damaged").exists());
    }

    #[test]
    fn a_second_daemon_on_the_same_file_is_refused_with_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.redb");
        let _first = RedbJournal::open(&path).unwrap();
        let e = RedbJournal::open(&path).unwrap_err().to_string();
        assert!(e.contains("second bosun"), "{e}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_that_names_the_file() {
        let e = RedbJournal::open(Path::new("/nowhere/at/all/journal.redb")).unwrap_err().to_string();
        assert!(e.contains("/nowhere/at/all/journal.redb"), "{e}");
    }
}
