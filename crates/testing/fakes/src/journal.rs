//! A journal in memory. It outlives the daemon of a test as long as the test holds it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ports::journal::{Journal, JournalError};
use tokio::time::Instant;

/// How long a line that is written behind is not on disk: as long as in the real one.
const SOON: Duration = Duration::from_millis(200);

/// What is on disk of a line that is written behind, and since when it is not what was written.
type Behind = (Instant, Option<Vec<u8>>);

/// Lines in memory.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    lines: Mutex<BTreeMap<String, Vec<u8>>>,
    behind: Mutex<BTreeMap<String, Behind>>,
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

    /// The power fails: lines that were written behind within the last moment, and with no other since, are as they were before.
    /// Returns how many.
    pub fn lose_power(&self) -> usize {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lost = 0;
        for (key, (at, before)) in std::mem::take(&mut *self.behind.lock().unwrap_or_else(PoisonError::into_inner)) {
            if at.elapsed() >= SOON {
                continue;
            }
            lost += 1;
            match before {
                Some(value) => drop(lines.insert(key, value)),
                None => drop(lines.remove(&key)),
            }
        }
        lost
    }

    fn change<T>(&self, f: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> T) -> Result<T, JournalError> {
        assert!(!*self.panics.lock().unwrap_or_else(PoisonError::into_inner), "a write panics, by order");
        let done = self.with(f)?;
        // The commit of a write takes along what is written behind.
        self.behind.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(done)
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

    /// On disk in a moment, see [`Self::lose_power`]. What cannot be written is lost: nobody hears of it, as of the real one's.
    fn put_soon(&self, key: &str, value: Option<Vec<u8>>) {
        if *self.panics.lock().unwrap_or_else(PoisonError::into_inner) {
            return;
        }
        let before = self.with(|lines| match value {
            Some(value) => lines.insert(key.to_owned(), value),
            None => lines.remove(key),
        });
        let Ok(before) = before else { return };
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let was_on_disk = match behind.remove(key) {
            Some((at, older)) if now - at < SOON => (at, older),
            _ => (now, before),
        };
        behind.insert(key.to_owned(), was_on_disk);
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, JournalError> {
        self.with(|lines| lines.keys().filter(|k| k.starts_with(prefix)).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_power_cut_takes_what_is_written_behind_and_nothing_that_somebody_waited_for() {
        let journal = MemoryJournal::default();
        let read = |key: &str| journal.load(key).expect("it can be read");
        journal.save("a", b"kept").expect("it can be written");
        journal.put_soon("a", Some(b"young".to_vec()));
        journal.put_soon("a", Some(b"younger".to_vec()));
        journal.put_soon("b", Some(b"young".to_vec()));
        assert_eq!(journal.lose_power(), 2);
        assert_eq!((read("a"), read("b")), (Some(b"kept".to_vec()), None));
        journal.put_soon("b", Some(b"old".to_vec()));
        tokio::time::sleep(SOON).await;
        journal.put_soon("c", Some(b"taken along".to_vec()));
        journal.save("d", b"kept").expect("it can be written");
        assert_eq!(journal.lose_power(), 0);
        assert_eq!(journal.keys("").expect("it can be read"), ["a", "b", "c", "d"]);
    }
}
