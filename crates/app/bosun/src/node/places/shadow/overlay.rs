//! A journal whose writes only their writer reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ports::journal::{Journal, JournalError};

/// Lines that one may write.
const MOST: usize = 4096;

/// What was written, over what is there.
pub(super) struct Overlay {
    below: Arc<dyn Journal>,
    /// `None`: removed.
    written: Mutex<BTreeMap<String, Option<Vec<u8>>>>,
}

impl Overlay {
    pub(super) fn over(below: Arc<dyn Journal>) -> Self {
        Overlay { below, written: Mutex::default() }
    }

    fn written(&self) -> MutexGuard<'_, BTreeMap<String, Option<Vec<u8>>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, key: &str, value: Option<Vec<u8>>) -> Result<(), JournalError> {
        let mut written = self.written();
        if written.len() >= MOST && !written.contains_key(key) {
            return Err(JournalError { message: format!("a candidate may write {MOST} lines") });
        }
        written.insert(key.to_owned(), value);
        Ok(())
    }
}

impl Journal for Overlay {
    fn load(&self, key: &str) -> Result<Option<Vec<u8>>, JournalError> {
        let written = self.written().get(key).cloned();
        written.map_or_else(|| self.below.load(key), Ok)
    }

    fn save(&self, key: &str, value: &[u8]) -> Result<(), JournalError> {
        self.write(key, Some(value.to_vec()))
    }

    fn remove(&self, key: &str) -> Result<(), JournalError> {
        self.write(key, None)
    }

    fn put_soon(&self, key: &str, value: Option<Vec<u8>>) {
        if let Err(e) = self.write(key, value) {
            tracing::debug!(key, error = %e, "a line of a candidate is lost");
        }
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, JournalError> {
        let mut keys: BTreeSet<String> = self.below.keys(prefix)?.into_iter().collect();
        for (key, value) in self.written().iter().filter(|(key, _)| key.starts_with(prefix)) {
            match value {
                Some(_) => keys.insert(key.clone()),
                None => keys.remove(key),
            };
        }
        Ok(keys.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fakes::MemoryJournal;

    #[test]
    fn what_is_written_is_read_back_and_changes_nothing_below() {
        let below = Arc::new(MemoryJournal::default());
        below.save("probe/a", b"1").unwrap();
        below.save("probe/b", b"2").unwrap();
        let over = Overlay::over(below.clone());
        over.save("probe/c", b"3").unwrap();
        over.remove("probe/a").unwrap();
        over.put_soon("probe/b", Some(b"9".to_vec()));
        assert_eq!(over.keys("probe/").unwrap(), ["probe/b", "probe/c"]);
        let load = |key| over.load(key).unwrap();
        assert_eq!((load("probe/a"), load("probe/b")), (None, Some(b"9".to_vec())));
        assert_eq!(below.keys("").unwrap(), ["probe/a", "probe/b"]);
        assert_eq!(below.load("probe/b").unwrap().as_deref(), Some(&b"2"[..]));
        (0..MOST).for_each(|n| over.put_soon(&format!("probe/x{n}"), Some(Vec::new())));
        assert!(over.save("probe/one-more", b"").is_err() && over.save("probe/c", b"4").is_ok());
    }
}
