//! The node's journal, as far as the role has tables in it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ports::journal::{Journal, JournalError};
use seam::Out;
use seam::v1::{FromManager, Keep, Kept, Line, from_manager, keep};
use tokio::sync::Notify;

/// How long a call may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Lines that may wait to be written soon. What comes beyond is lost, and told.
const WAITING: usize = 4096;

/// Calls to the journal in the order in which they were made. Its calls block, as those of any journal.
#[derive(Default)]
pub(crate) struct RemoteJournal {
    next: AtomicU64,
    is_over: AtomicBool,
    queue: Mutex<VecDeque<Keep>>,
    more: Notify,
    waiting: Mutex<BTreeMap<u64, SyncSender<Kept>>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed<T>(message: &str) -> Result<T, JournalError> {
    Err(JournalError { message: message.to_owned() })
}

impl RemoteJournal {
    /// Says what is asked of it, until the node is gone.
    pub(crate) async fn carry(self: Arc<Self>, out: Arc<Out<FromManager>>) {
        loop {
            let next = lock(&self.queue).pop_front();
            let Some(keep) = next else {
                self.more.notified().await;
                continue;
            };
            if out.say(from_manager::What::Keep(keep)).await.is_err() {
                return;
            }
        }
    }

    /// An answer has come.
    pub(crate) fn kept(&self, kept: Kept) {
        if let Some(waiting) = lock(&self.waiting).remove(&kept.id) {
            let _gave_up = waiting.try_send(kept);
        }
    }

    /// The node is gone: nobody waits any more.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        lock(&self.waiting).clear();
    }

    fn ask(&self, what: keep::What) -> Result<Kept, JournalError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (tx, rx) = sync_channel(1);
        lock(&self.waiting).insert(id, tx);
        if self.is_over.load(Ordering::SeqCst) {
            lock(&self.waiting).remove(&id);
            return failed("the node is gone");
        }
        lock(&self.queue).push_back(Keep { id, what: Some(what) });
        self.more.notify_one();
        let kept = rx.recv_timeout(PATIENCE);
        lock(&self.waiting).remove(&id);
        match kept {
            Ok(kept) if kept.error.is_empty() => Ok(kept),
            Ok(kept) => failed(&kept.error),
            Err(e) => failed(&format!("no answer of the node: {e}")),
        }
    }
}

impl Journal for RemoteJournal {
    fn load(&self, key: &str) -> Result<Option<Vec<u8>>, JournalError> {
        Ok(self.ask(keep::What::Load(key.to_owned()))?.value)
    }

    fn save(&self, key: &str, value: &[u8]) -> Result<(), JournalError> {
        self.ask(keep::What::Save(Line { key: key.to_owned(), value: Some(value.to_vec()) })).map(drop)
    }

    fn remove(&self, key: &str) -> Result<(), JournalError> {
        self.ask(keep::What::Remove(key.to_owned())).map(drop)
    }

    fn put_soon(&self, key: &str, value: Option<Vec<u8>>) {
        let line = Keep { id: 0, what: Some(keep::What::PutSoon(Line { key: key.to_owned(), value })) };
        let mut queue = lock(&self.queue);
        if self.is_over.load(Ordering::SeqCst) || queue.len() >= WAITING {
            tracing::warn!(key, "a line of the journal is lost, for the node does not take it");
            return;
        }
        queue.push_back(line);
        drop(queue);
        self.more.notify_one();
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, JournalError> {
        Ok(self.ask(keep::What::Keys(prefix.to_owned()))?.keys)
    }
}
