//! What the holders of a connection, its streams and its driver share.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use thiserror::Error;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::frame;
use crate::headers::Headers;

/// Requests to the writer that may wait: more than this, and their senders wait.
pub(crate) const COMMANDS: usize = 16;
/// Answers to the peer (pongs, resets, replies) that may wait: more than this is a flood.
const ANSWERS: usize = 1024;

/// Bounds of a connection.
#[derive(Debug, Clone)]
pub struct Options {
    /// Time between pings of ours; a streaming server's idle timer counts them as life. `None`: none.
    pub ping_every: Option<Duration>,
    /// Pieces (of at most 32 KiB) that a stream keeps for a slow reader before it stops the connection.
    pub queue: usize,
    /// Streams at a time, ours and the peer's.
    pub max_streams: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { ping_every: Some(Duration::from_secs(5)), queue: 2, max_streams: 4096 }
    }
}

/// Why a stream was not opened.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum OpenError {
    /// The peer reset it with this status.
    #[error("the peer refused the stream with status {0}")]
    Refused(u32),
    /// The peer says that it is going away.
    #[error("the peer takes no more streams")]
    GoingAway,
    /// [`Options::max_streams`], or headers too long to send.
    #[error("too many streams or too long headers")]
    Limit,
    /// The connection ended.
    #[error("the connection is closed")]
    Closed,
}

/// What the writer does in the order of asking.
#[derive(Debug)]
pub(crate) enum Command {
    Open(Box<Open>),
    Data { stream: u32, bytes: Bytes, fin: bool },
}

#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) headers: Headers,
    pub(crate) data: mpsc::Sender<Bytes>,
    pub(crate) end: Arc<End>,
    pub(crate) reply: oneshot::Sender<Result<u32, OpenError>>,
}

/// What the reader wants the writer to say. Never waits: a reader that waited for the writer could wait for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Pong(u32),
    Reply(u32),
    Reset(u32, u32),
}

/// How the peer's direction of a stream ended; decides what its reader sees after the last piece.
#[derive(Debug, Default)]
pub(crate) struct End(AtomicU8);

impl End {
    const FIN: u8 = 1;
    const RESET: u8 = 2;

    pub(crate) fn finished(&self) {
        self.0.store(Self::FIN, Ordering::Release);
    }

    pub(crate) fn reset(&self) {
        self.0.store(Self::RESET, Ordering::Release);
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::FIN
    }

    pub(crate) fn is_reset(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::RESET
    }
}

#[derive(Debug)]
pub(crate) struct Entry {
    /// `None`: the peer has finished.
    pub(crate) data: Option<mpsc::Sender<Bytes>>,
    pub(crate) end: Arc<End>,
    /// Who waits for the peer's SYN_REPLY.
    pub(crate) reply: Option<oneshot::Sender<Result<u32, OpenError>>>,
    /// We have not finished.
    pub(crate) sending: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) streams: BTreeMap<u32, Entry>,
    pub(crate) answers: VecDeque<Answer>,
    pub(crate) going_away: bool,
    pub(crate) flooded: bool,
}

impl Table {
    pub(crate) fn answer(&mut self, answer: Answer) {
        if self.answers.len() < ANSWERS {
            self.answers.push_back(answer);
        } else {
            self.flooded = true;
        }
    }

    /// Forgets a stream that is over in both directions.
    pub(crate) fn tidy(&mut self, id: u32) {
        if self.streams.get(&id).is_some_and(|e| !e.sending && e.data.is_none()) {
            self.streams.remove(&id);
        }
    }
}

/// Keeps a connection open, and reaches its driver.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) shared: Arc<Shared>,
}

/// What the holders and the driver of a connection share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    table: Mutex<Table>,
    pub(crate) wake: Notify,
}

impl Shared {
    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn answer(&self, answer: Answer) {
        self.table().answer(answer);
        self.wake.notify_one();
    }

    /// Nobody holds either half any more.
    pub(crate) fn abandon(&self, id: u32) {
        let mut table = self.table();
        if table.streams.remove(&id).is_some() {
            table.answer(Answer::Reset(id, frame::CANCEL));
            drop(table);
            self.wake.notify_one();
        }
    }
}
