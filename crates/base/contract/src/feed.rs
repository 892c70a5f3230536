//! What is posted in this process, for a reader in another one: all of it, then numbered changes, as JSON.

use actor::watch;
use serde::Serialize;

use crate::board::{BoardReader, Cursor, Key, Row, ValueReader};
use crate::record::json;

/// What happened on a board since it was looked at last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// Number of the latest change.
    pub number: u64,
    /// These are all rows: what is not among them is gone.
    pub whole: bool,
    /// Keys that changed, with the row as it is now, both as JSON; `None`: it is gone. The key of a single value is `null`.
    pub rows: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// Follows what is posted. It begins with all of it.
pub trait Feed: Send {
    /// What has happened meanwhile; `None`: nothing.
    fn next(&mut self) -> Option<Changes>;
    /// Wakes when there is something.
    fn changes(&self) -> watch::Receiver<u64>;
}

fn text<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    json(value).into_bytes()
}

/// What is posted in a table.
pub(crate) fn table<K: Key, V: Serialize + Send + Sync + 'static>(board: BoardReader<K, V>) -> Box<dyn Feed> {
    Box::new(Table { board, cursor: None })
}

/// What is published as a value.
pub(crate) fn single<V: Serialize + Send + Sync + 'static>(value: ValueReader<V>) -> Box<dyn Feed> {
    Box::new(Single { value, seen: None })
}

struct Table<K, V> {
    board: BoardReader<K, V>,
    cursor: Option<Cursor>,
}

impl<K: Key, V: Serialize + Send + Sync + 'static> Feed for Table<K, V> {
    fn next(&mut self) -> Option<Changes> {
        let since = self.board.since(self.cursor.unwrap_or_default());
        let is_first = self.cursor.replace(since.cursor).is_none();
        if !is_first && !since.whole && since.rows.is_empty() {
            return None;
        }
        let row = |(key, row): &(K, Option<Row<V>>)| (text(key), row.as_ref().map(|row| text(&*row.value)));
        let rows = since.rows.iter().map(row).collect();
        Some(Changes { number: since.cursor.seq(), whole: is_first || since.whole, rows })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.board.changes()
    }
}

struct Single<V> {
    value: ValueReader<V>,
    seen: Option<u64>,
}

impl<V: Serialize + Send + Sync + 'static> Feed for Single<V> {
    fn next(&mut self) -> Option<Changes> {
        let row = self.value.row();
        let before = self.seen.replace(row.seq);
        let is_news = before != Some(row.seq);
        is_news.then(|| Changes {
            number: row.seq,
            whole: before.is_none(),
            rows: vec![(text(&()), Some(text(&*row.value)))],
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.value.changes()
    }
}
