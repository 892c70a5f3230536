//! A journal in memory. It outlives the daemon of a test as long as the test holds it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ports::journal::{Journal, JournalError};

/// Lines in memory.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    lines: Mutex<BTreeMap<String, Vec<u8>>>,
    broken: Mutex<bool>,
}

impl MemoryJournal {
    /// From now on every call fails (`true`) or works.
    pub fn set_broken(&self, broken: bool) {
        *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = broken;
    }

    fn with<T>(&self, f: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> T) -> Result<T, JournalError> {
        if *self.broken.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(JournalError { message: "no space left on device".to_owned() });
        }
        Ok(f(&mut self.lines.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Journal for MemoryJournal {
    fn load(&self, key: &str) -> Result<Option<Vec<u8>>, JournalError> {
        self.with(|lines| lines.get(key).cloned())
    }

    fn save(&self, key: &str, value: &[u8]) -> Result<(), JournalError> {
        self.with(|lines| drop(lines.insert(key.to_owned(), value.to_vec())))
    }

    fn remove(&self, key: &str) -> Result<(), JournalError> {
        self.with(|lines| drop(lines.remove(key)))
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, JournalError> {
        self.with(|lines| lines.keys().filter(|k| k.starts_with(prefix)).cloned().collect())
    }
}
