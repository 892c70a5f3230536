//! Published state: what flows upward.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::watch;

/// A published table: one `watch` per key, plus a counter that moves with every change.
///
/// One manager posts, any number of actors read. Posting is O(1) and wakes only the readers of that key, so a hundred pod
/// workers cost nothing while one pod changes. The board lives in the wiring; it outlives restarts of its manager.
pub struct Board<K, V> {
    inner: Arc<Inner<K, V>>,
}

struct Inner<K, V> {
    rows: DashMap<K, watch::Sender<Option<Arc<V>>>>,
    version: watch::Sender<u64>,
}

impl<K, V> Clone for Board<K, V> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<K: Eq + Hash, V> fmt::Debug for Board<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Board({} rows, version {})", self.inner.rows.len(), *self.inner.version.borrow())
    }
}

impl<K: Eq + Hash + Ord + Clone, V> Default for Board<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Eq + Hash + Ord + Clone, V> Board<K, V> {
    /// An empty board.
    #[must_use]
    pub fn new() -> Self {
        Self { inner: Arc::new(Inner { rows: DashMap::with_shard_amount(4), version: watch::channel(0).0 }) }
    }

    /// Replaces the row of `key` and wakes its readers.
    pub fn post(&self, key: K, value: Arc<V>) {
        self.inner.rows.entry(key).or_insert_with(|| watch::channel(None).0).send_replace(Some(value));
        self.inner.version.send_modify(|v| *v += 1);
    }

    /// Takes the row away. Readers that still wait on it see `None`.
    pub fn remove(&self, key: &K) {
        let existed = self.inner.rows.get(key).is_some_and(|row| row.send_replace(None).is_some());
        // What another thread posted meanwhile stays.
        self.inner.rows.remove_if(key, |_, row| row.receiver_count() == 0 && row.borrow().is_none());
        if existed {
            self.inner.version.send_modify(|v| *v += 1);
        }
    }

    /// The row of `key` now.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        self.inner.rows.get(key).and_then(|row| row.borrow().clone())
    }

    /// Follows one row; it need not exist yet.
    #[must_use]
    pub fn subscribe(&self, key: K) -> watch::Receiver<Option<Arc<V>>> {
        self.inner.rows.entry(key).or_insert_with(|| watch::channel(None).0).subscribe()
    }

    /// Follows the whole table by its version; read it with [`Board::snapshot`] afterwards.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.version.subscribe()
    }

    /// All rows, in key order.
    #[must_use]
    pub fn snapshot(&self) -> BTreeMap<K, Arc<V>> {
        self.inner
            .rows
            .iter()
            .filter_map(|row| row.value().borrow().clone().map(|value| (row.key().clone(), value)))
            .collect()
    }

    /// Forgets rows without a value that nobody follows any more. Cheap; housekeeping calls it now and then.
    pub fn sweep(&self) {
        self.inner.rows.retain(|_, row| row.borrow().is_some() || row.receiver_count() > 0);
    }
}

/// Publishing and reading side of a single value.
pub struct Published<V> {
    tx: Arc<watch::Sender<Arc<V>>>,
}

impl<V> Clone for Published<V> {
    fn clone(&self) -> Self {
        Self { tx: self.tx.clone() }
    }
}

impl<V> fmt::Debug for Published<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Published")
    }
}

impl<V: Default> Default for Published<V> {
    fn default() -> Self {
        Self::new(V::default())
    }
}

impl<V> Published<V> {
    /// Starts with `initial`.
    #[must_use]
    pub fn new(initial: V) -> Self {
        Self { tx: Arc::new(watch::channel(Arc::new(initial)).0) }
    }

    /// Replaces the value and wakes readers.
    pub fn publish(&self, value: V) {
        self.tx.send_replace(Arc::new(value));
    }

    /// The value now.
    #[must_use]
    pub fn get(&self) -> Arc<V> {
        self.tx.borrow().clone()
    }

    /// Follows the value.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<V>> {
        self.tx.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_of_one_row_is_not_woken_by_another_row() {
        let board: Board<u8, &str> = Board::new();
        let mut one = board.subscribe(1);
        one.borrow_and_update();
        board.post(2, Arc::new("two"));
        assert!(!one.has_changed().unwrap());
        board.post(1, Arc::new("one"));
        assert!(one.has_changed().unwrap());
        assert_eq!(board.snapshot().len(), 2);
    }

    #[test]
    fn a_removed_row_is_none_for_its_readers_and_swept_when_they_left() {
        let board: Board<u8, &str> = Board::new();
        board.post(1, Arc::new("one"));
        let rx = board.subscribe(1);
        board.remove(&1);
        assert!(rx.borrow().is_none());
        assert!(board.get(&1).is_none());
        drop(rx);
        board.sweep();
        assert!(board.inner.rows.is_empty());
    }

    #[test]
    fn every_change_moves_the_version() {
        let board: Board<u8, &str> = Board::new();
        let version = board.changes();
        board.post(1, Arc::new("a"));
        board.post(1, Arc::new("b"));
        board.remove(&1);
        board.remove(&1);
        assert_eq!(*version.borrow(), 3);
    }
}
