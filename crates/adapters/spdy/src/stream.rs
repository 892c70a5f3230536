//! The two halves of a stream.

use std::sync::Arc;

use bytes::Bytes;
use thiserror::Error;
use tokio::sync::mpsc;

use crate::shared::{Command, End, Handle};

/// How the peer's data ended other than by its own word.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum StreamError {
    /// The peer reset the stream.
    #[error("the stream was reset")]
    Reset,
    /// The connection ended before the stream did.
    #[error("the connection was lost")]
    Lost,
}

/// The connection or the stream takes no more data.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error("the stream is closed")]
pub struct Closed;

/// A stream that the peer has accepted. When both halves are dropped before both sides finished, it is reset.
#[derive(Debug)]
pub struct Stream {
    sender: Sender,
    receiver: Receiver,
}

#[derive(Debug)]
struct Held {
    id: u32,
    handle: Handle,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.handle.shared.abandon(self.id);
    }
}

impl Stream {
    pub(crate) fn new(id: u32, handle: Handle, pieces: mpsc::Receiver<Bytes>, end: Arc<End>) -> Self {
        let held = Arc::new(Held { id, handle });
        let sender = Sender { held: Arc::clone(&held), finished: false };
        Self { sender, receiver: Receiver { _held: held, pieces, end } }
    }

    /// Both halves.
    #[must_use]
    pub fn split(self) -> (Sender, Receiver) {
        (self.sender, self.receiver)
    }

    /// Sends; see [`Sender::send`].
    ///
    /// # Errors
    /// See [`Closed`].
    pub async fn send(&mut self, bytes: Bytes) -> Result<(), Closed> {
        self.sender.send(bytes).await
    }

    /// Half-closes; see [`Sender::finish`].
    ///
    /// # Errors
    /// See [`Closed`].
    pub async fn finish(&mut self) -> Result<(), Closed> {
        self.sender.finish().await
    }

    /// Receives; see [`Receiver::next`].
    pub async fn next(&mut self) -> Option<Result<Bytes, StreamError>> {
        self.receiver.next().await
    }
}

/// The half that sends.
#[derive(Debug)]
pub struct Sender {
    held: Arc<Held>,
    finished: bool,
}

impl Sender {
    /// Sends bytes; waits while the connection is busy.
    ///
    /// # Errors
    /// When the stream is finished or reset, or the connection is gone.
    pub async fn send(&mut self, bytes: Bytes) -> Result<(), Closed> {
        if bytes.is_empty() && !self.finished {
            return Ok(());
        }
        if self.finished || !self.is_open() {
            return Err(Closed);
        }
        self.command(bytes, false).await
    }

    /// Says that no more follows. Once is enough; more does nothing.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn finish(&mut self) -> Result<(), Closed> {
        if self.finished {
            return Ok(());
        }
        self.finished = true;
        if !self.is_open() {
            return Ok(());
        }
        self.command(Bytes::new(), true).await
    }

    fn is_open(&self) -> bool {
        self.held.handle.shared.table().streams.contains_key(&self.held.id)
    }

    async fn command(&self, bytes: Bytes, fin: bool) -> Result<(), Closed> {
        let command = Command::Data { stream: self.held.id, bytes, fin };
        self.held.handle.commands.send(command).await.map_err(|_| Closed)
    }
}

/// The half that receives.
#[derive(Debug)]
pub struct Receiver {
    _held: Arc<Held>,
    pieces: mpsc::Receiver<Bytes>,
    end: Arc<End>,
}

impl Receiver {
    /// The next piece; `None` when the peer has finished. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<Bytes, StreamError>> {
        match self.pieces.recv().await {
            Some(bytes) => Some(Ok(bytes)),
            None if self.end.is_finished() => None,
            None if self.end.is_reset() => Some(Err(StreamError::Reset)),
            None => Some(Err(StreamError::Lost)),
        }
    }
}
