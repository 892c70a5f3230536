//! A journal in memory. It outlives the daemon of a test as long as the test holds it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ports::journal::{Journal, JournalError};

/// Lines in memory.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    lines: Mutex<BTreeMap<String, Vec<u8>>>,
    broken: Mutex<bool>,
    panics: Mutex<bool>,
    hangs: Mutex<bool>,
}

impl MemoryJournal {
    /// From now on every call fails (`true`) or works.
    pub fn set_broken(&self, broken: bool) {
        *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = broken;
    }

    /// From now on every write panics (`true`) or works.
    pub fn set_panics(&self, panics: bool) {
        *self.panics.lock().unwrap_or_else(PoisonError::into_inner) = panics;
    }

    /// From now on no call comes back (`true`), or all do; those that hang go on hanging. In simulated time only.
    pub fn set_hangs(&self, hangs: bool) {
        *self.hangs.lock().unwrap_or_else(PoisonError::into_inner) = hangs;
    }

    fn change<T>(&self, f: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> T) -> Result<T, JournalError> {
        assert!(!*self.panics.lock().unwrap_or_else(PoisonError::into_inner), "a write panics, by order");
        self.with(f)
    }

    fn with<T>(&self, f: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> T) -> Result<T, JournalError> {
        if *self.hangs.lock().unwrap_or_else(PoisonError::into_inner) {
            actor::testing::hang();
        }
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
        self.change(|lines| drop(lines.insert(key.to_owned(), value.to_vec())))
    }

    fn remove(&self, key: &str) -> Result<(), JournalError> {
        self.change(|lines| drop(lines.remove(key)))
    }

    /// On disk at once. What cannot be written is lost: nobody hears of it, as of the real one's.
    fn put_soon(&self, key: &str, value: Option<Vec<u8>>) {
        if *self.panics.lock().unwrap_or_else(PoisonError::into_inner) {
            return;
        }
        let _lost = self.with(|lines| match value {
            Some(value) => lines.insert(key.to_owned(), value),
            None => lines.remove(key),
        });
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, JournalError> {
        self.with(|lines| lines.keys().filter(|k| k.starts_with(prefix)).cloned().collect())
    }
}
