//! Published state: what flows upward.
//!
//! A board is a table with one `watch` per key; a [`Value`] is the same for a single value. One role posts, anybody who
//! declares it reads. Boards live in the wiring, outside of the actors: a restarted manager keeps its readers. Every change
//! has a number, so that a reader elsewhere can follow without loss, over restarts of the node too: [`BoardReader::since`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actor::watch;
use dashmap::DashMap;
use serde::{Deserialize, Serialize};

use crate::fence::{Fence, FenceToken};
use crate::record::json;

mod value;

pub use value::{Value, ValuePoster, ValueReader};

/// Changes that a board remembers. Who comes back after more than these starts from a snapshot.
pub const KEPT_CHANGES: usize = 1024;

/// What a key of a board must be.
pub trait Key: Eq + Hash + Ord + Clone + Send + Sync + Serialize + 'static {}
impl<K: Eq + Hash + Ord + Clone + Send + Sync + Serialize + 'static> Key for K {}

/// One row, with the number of the change that made it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row<V> {
    /// Number of the change.
    pub seq: u64,
    /// Content.
    pub value: Arc<V>,
}

impl<V> Clone for Row<V> {
    fn clone(&self) -> Self {
        Row { seq: self.seq, value: self.value.clone() }
    }
}

/// How far a reader has come: which life of the board, and the number of the last change that it knows. The default has
/// seen nothing. For the reader it has no content: it is handed back as it came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Drawn when the board was made, never 0: numbers of another life (the node was started again) mean nothing here.
    epoch: u64,
    seq: u64,
}

impl Cursor {
    /// The number of the last change that is known.
    pub(crate) fn seq(self) -> u64 {
        self.seq
    }
}

/// What happened on a board since a [`Cursor`], as data for a reader elsewhere. A list, as keys are not always text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Since<K, V> {
    /// Where to go on from.
    pub cursor: Cursor,
    /// The board does not know each change since then: these are all rows, and what is not among them is gone.
    pub whole: bool,
    /// The keys that changed, once each and in order, with the row as it is now; `None`: it is gone.
    pub rows: Vec<(K, Option<Row<V>>)>,
}

/// The storage of a table.
pub struct Board<K, V> {
    inner: Arc<Inner<K, V>>,
}

struct Inner<K, V> {
    /// Shown in transcripts and logs.
    name: &'static str,
    /// See [`Cursor`].
    epoch: u64,
    slots: DashMap<K, Slot<V>>,
    log: Mutex<Log<K>>,
    version: watch::Sender<u64>,
    /// Rows that were looked at, one by one or as parts of a whole.
    read: AtomicU64,
}

/// Place of one key: with a row, or only with readers that wait for one.
struct Slot<V> {
    seq: u64,
    row: watch::Sender<Option<Arc<V>>>,
}

impl<V> Slot<V> {
    fn empty() -> Self {
        Slot { seq: 0, row: watch::channel(None).0 }
    }

    fn is_idle(&self) -> bool {
        self.row.receiver_count() == 0 && self.row.borrow().is_none()
    }

    fn row(&self) -> Option<Row<V>> {
        self.row.borrow().clone().map(|value| Row { seq: self.seq, value })
    }
}

/// Which keys changed lately. Its lock makes a change and its number one step.
struct Log<K> {
    seq: u64,
    changed: VecDeque<(u64, K)>,
    /// Slots at which places without row and reader are looked for.
    sweep_at: usize,
}

impl<K: Key> Log<K> {
    /// The keys that changed after `seq`; `None`: not all of them are known any more, or `seq` is no number of this board.
    fn since(&self, seq: u64) -> Option<BTreeSet<&K>> {
        let known = self.changed.front().map_or(self.seq, |(first, _)| first - 1);
        let changed = || self.changed.iter().rev().take_while(|(at, _)| *at > seq).map(|(_, key)| key).collect();
        (known..=self.seq).contains(&seq).then(changed)
    }
}

impl<K, V> Clone for Board<K, V> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<K: Key, V> fmt::Debug for Board<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Board({}, version {})", self.inner.name, *self.inner.version.borrow())
    }
}

impl<K: Key, V: Send + Sync + 'static> Board<K, V> {
    /// An empty board.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        let log = Mutex::new(Log { seq: 0, changed: VecDeque::new(), sweep_at: 64 });
        let slots = DashMap::with_shard_amount(4);
        let epoch = RandomState::new().build_hasher().finish().max(1);
        Self {
            inner: Arc::new(Inner { name, epoch, slots, log, version: watch::channel(0).0, read: AtomicU64::new(0) }),
        }
    }

    /// The reading side.
    #[must_use]
    pub fn reader(&self) -> BoardReader<K, V> {
        BoardReader { inner: self.inner.clone() }
    }

    /// Rows that were looked at since the board was made: what reading it costs.
    pub(crate) fn rows_read(&self) -> u64 {
        self.inner.read.load(Ordering::Relaxed)
    }

    /// Replaces a row or takes it away, past the fence.
    pub(crate) fn put(&self, fence: &Fence, key: K, value: Option<Arc<V>>)
    where
        V: Serialize,
    {
        self.inner.post(fence, key, value);
    }

    /// The posting side, for as long as the token passes its fence.
    #[must_use]
    pub fn poster(&self, token: FenceToken) -> BoardPoster<K, V> {
        BoardPoster { inner: self.inner.clone(), token }
    }
}

impl<K: Key, V> Inner<K, V> {
    fn log(&self) -> MutexGuard<'_, Log<K>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a row, or takes it away. Taking away what is not there is no change.
    fn set(&self, key: K, value: Option<Arc<V>>) {
        let mut log = self.log();
        if value.is_none() && !self.slots.get(&key).is_some_and(|slot| slot.row.borrow().is_some()) {
            return;
        }
        log.seq += 1;
        let seq = log.seq;
        log.changed.push_back((seq, key.clone()));
        if log.changed.len() > KEPT_CHANGES {
            log.changed.pop_front();
        }
        let gone = value.is_none();
        let mut slot = self.slots.entry(key.clone()).or_insert_with(Slot::empty);
        slot.seq = seq;
        slot.row.send_replace(value);
        drop(slot);
        if gone {
            self.slots.remove_if(&key, |_, slot| slot.is_idle());
        }
        self.version.send_replace(seq);
    }

    /// As [`Self::set`], noted.
    fn post(&self, fence: &Fence, key: K, value: Option<Arc<V>>)
    where
        V: Serialize,
    {
        fence.record(self.name, || match &value {
            Some(value) => format!("{} {}", json(&key), json(value)),
            None => format!("{} gone", json(&key)),
        });
        self.set(key, value);
    }

    fn subscribe(&self, key: K) -> watch::Receiver<Option<Arc<V>>> {
        // Places that were waited for in vain go now and then: the cost is shared by those who make them.
        let mut log = self.log();
        if self.slots.len() >= log.sweep_at {
            self.slots.retain(|_, slot| !slot.is_idle());
            log.sweep_at = 2 * self.slots.len().max(32);
        }
        self.slots.entry(key).or_insert_with(Slot::empty).row.subscribe()
    }

    fn rows(&self) -> BTreeMap<K, Row<V>> {
        let rows: BTreeMap<K, Row<V>> =
            self.slots.iter().filter_map(|slot| Some((slot.key().clone(), slot.value().row()?))).collect();
        self.count(rows.len());
        rows
    }

    fn count(&self, rows: usize) {
        self.read.fetch_add(rows as u64, Ordering::Relaxed);
    }

    fn since(&self, cursor: Cursor) -> Since<K, V> {
        let log = self.log();
        let now = Cursor { epoch: self.epoch, seq: log.seq };
        let Some(keys) = log.since(cursor.seq).filter(|_| cursor.epoch == self.epoch) else {
            let rows = self.rows().into_iter().map(|(key, row)| (key, Some(row))).collect();
            return Since { cursor: now, whole: true, rows };
        };
        self.count(keys.len());
        let row = |key: &K| self.slots.get(key).and_then(|slot| slot.row());
        Since { cursor: now, whole: false, rows: keys.into_iter().map(|key| (key.clone(), row(key))).collect() }
    }
}

/// The posting side of a board. Posting wakes only the readers of that key, so a hundred pod workers cost nothing while one
/// pod changes. What a poster posts after its successor was made is refused: see [`crate::Crew`].
pub struct BoardPoster<K, V> {
    inner: Arc<Inner<K, V>>,
    token: FenceToken,
}

impl<K, V> Clone for BoardPoster<K, V> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), token: self.token.clone() }
    }
}

impl<K, V> fmt::Debug for BoardPoster<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BoardPoster({})", self.inner.name)
    }
}

impl<K: Key, V: Serialize + Send + Sync + 'static> BoardPoster<K, V> {
    /// Replaces the row of `key` and wakes its readers. Answers whether it was done: no when this poster is no longer the
    /// newest (counted by the fence).
    pub fn post(&self, key: K, value: Arc<V>) -> bool {
        self.token.pass(self.inner.name, |fence| self.inner.post(fence, key, Some(value)))
    }

    /// Takes the row away. Readers that still wait on it see `None`. Answers as [`Self::post`].
    pub fn remove(&self, key: &K) -> bool {
        self.token.pass(self.inner.name, |fence| self.inner.post(fence, key.clone(), None))
    }

    /// The reading side of the same board.
    #[must_use]
    pub fn reader(&self) -> BoardReader<K, V> {
        BoardReader { inner: self.inner.clone() }
    }

    /// The row of `key` now.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        self.reader().get(key)
    }

    /// All rows, in key order.
    #[must_use]
    pub fn snapshot(&self) -> BTreeMap<K, Arc<V>> {
        self.reader().snapshot()
    }
}

/// The reading side of a board.
pub struct BoardReader<K, V> {
    inner: Arc<Inner<K, V>>,
}

impl<K, V> Clone for BoardReader<K, V> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<K, V> fmt::Debug for BoardReader<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BoardReader({})", self.inner.name)
    }
}

impl<K: Key, V: Send + Sync + 'static> BoardReader<K, V> {
    /// The row of `key` now.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        self.inner.count(1);
        self.inner.slots.get(key).and_then(|slot| slot.row.borrow().clone())
    }

    /// Follows one row; it need not exist yet.
    #[must_use]
    pub fn subscribe(&self, key: K) -> watch::Receiver<Option<Arc<V>>> {
        self.inner.subscribe(key)
    }

    /// Follows the number of the latest change; read the board with [`Self::snapshot`] or [`Self::since`] afterwards.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.version.subscribe()
    }

    /// All rows, in key order. Not one moment in time: rows posted meanwhile may be in it or not.
    #[must_use]
    pub fn snapshot(&self) -> BTreeMap<K, Arc<V>> {
        self.inner.rows().into_iter().map(|(key, row)| (key, row.value)).collect()
    }

    /// The keys that changed after change `seen`, which is moved on; `None`: all rows must be looked at. What follows a board
    /// by this pays for the changes and not for the rows.
    pub fn changed(&self, seen: &mut Option<u64>) -> Option<BTreeSet<K>> {
        let log = self.inner.log();
        let before = seen.replace(log.seq)?;
        let changed: BTreeSet<K> = log.since(before)?.into_iter().cloned().collect();
        self.inner.count(changed.len());
        Some(changed)
    }

    /// What happened after `cursor`, as one moment in time. Hand back the cursor that it holds next time: nothing is lost in
    /// between, not even when the board had another life meanwhile.
    #[must_use]
    pub fn since(&self, cursor: Cursor) -> Since<K, V> {
        self.inner.since(cursor)
    }
}

#[cfg(test)]
mod tests;
