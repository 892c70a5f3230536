//! Posts in this process what was posted in another one. Nothing is believed that does not fit.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

use model::PodUid;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::board::{BoardPoster, Key, ValuePoster};

/// Rows that one table of a role may have by way of a border, where no pod bounds them.
const MOST_ROWS: usize = 4096;

/// Why a row that came over a border was not posted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such row can be read from it.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It is about a pod that is not here.
    #[error("there is no pod {0} here")]
    NoSuchPod(PodUid),
    /// The table is full.
    #[error("the table has {MOST_ROWS} rows, more are not taken")]
    TooMany,
    /// Another one has the right to post now.
    #[error("another one posts these rows now")]
    Fenced,
}

/// What became of rows that came.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Rows that were posted or taken away.
    pub posted: usize,
    /// Those that were not, each with its reason.
    pub refused: Vec<Refusal>,
}

impl Taken {
    fn note(&mut self, done: Result<(), Refusal>) {
        match done {
            Ok(()) => self.posted += 1,
            Err(why) => self.refused.push(why),
        }
    }
}

/// Takes changes of one table or value. A pod's row is taken when `is_here` knows the pod; to take it away is always fine.
pub trait Taker: Send {
    /// The next rows of a change. `whole`: of one that is all rows; with the last of these, when no `more` follow, what was
    /// not among them is taken away.
    fn take(
        &mut self,
        rows: Vec<(Vec<u8>, Option<Vec<u8>>)>,
        part: (bool, bool),
        is_here: &dyn Fn(&PodUid) -> bool,
    ) -> Taken;
}

fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(text).map_err(|e| Refusal::Unreadable(e.to_string()))
}

fn fenced(done: bool) -> Result<(), Refusal> {
    if done { Ok(()) } else { Err(Refusal::Fenced) }
}

/// Posts the rows of a table.
pub(crate) fn table<K: Key + DeserializeOwned, V: Content>(poster: BoardPoster<K, V>) -> Box<dyn Taker> {
    Box::new(Table { poster, seen: BTreeSet::new() })
}

/// Publishes a value.
pub(crate) fn single<V: Content>(poster: ValuePoster<V>) -> Box<dyn Taker> {
    Box::new(Single(poster))
}

/// What can be posted and read.
pub(crate) trait Content: Serialize + DeserializeOwned + Send + Sync + 'static {}
impl<V: Serialize + DeserializeOwned + Send + Sync + 'static> Content for V {}

struct Table<K, V> {
    poster: BoardPoster<K, V>,
    /// Keys of a whole of which more will come.
    seen: BTreeSet<K>,
}

impl<K: Key + DeserializeOwned, V: Content> Table<K, V> {
    fn one(
        &mut self,
        key: &[u8],
        value: Option<&[u8]>,
        whole: bool,
        is_here: &dyn Fn(&PodUid) -> bool,
    ) -> Result<(), Refusal> {
        let key: K = read(key)?;
        let Some(value) = value else { return fenced(self.poster.remove(&key)) };
        let row: V = read(value)?;
        if whole {
            self.seen.insert(key.clone());
        }
        match (&key as &dyn Any).downcast_ref::<PodUid>() {
            Some(pod) if !is_here(pod) => return Err(Refusal::NoSuchPod(pod.clone())),
            None if self.poster.get(&key).is_none() && self.poster.snapshot().len() >= MOST_ROWS => {
                return Err(Refusal::TooMany);
            }
            _ => {}
        }
        fenced(self.poster.post(key, Arc::new(row)))
    }
}

impl<K: Key + DeserializeOwned, V: Content> Taker for Table<K, V> {
    fn take(
        &mut self,
        rows: Vec<(Vec<u8>, Option<Vec<u8>>)>,
        (whole, more): (bool, bool),
        is_here: &dyn Fn(&PodUid) -> bool,
    ) -> Taken {
        let mut taken = Taken::default();
        for (key, value) in rows {
            let done = self.one(&key, value.as_deref(), whole, is_here);
            taken.note(done);
        }
        if whole && !more {
            let seen = std::mem::take(&mut self.seen);
            for key in self.poster.snapshot().into_keys().filter(|key| !seen.contains(key)) {
                taken.note(fenced(self.poster.remove(&key)));
            }
        }
        taken
    }
}

struct Single<V>(ValuePoster<V>);

impl<V: Content> Taker for Single<V> {
    fn take(&mut self, rows: Vec<(Vec<u8>, Option<Vec<u8>>)>, _: (bool, bool), _: &dyn Fn(&PodUid) -> bool) -> Taken {
        let mut taken = Taken::default();
        for (_, value) in rows {
            let value = value.ok_or_else(|| Refusal::Unreadable("a single value cannot be taken away".to_owned()));
            taken.note(value.and_then(|v| read::<V>(&v)).and_then(|v| fenced(self.0.publish(v))));
        }
        taken
    }
}
