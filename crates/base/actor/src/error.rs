//! What can go wrong between two actors.

use std::error::Error;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum TellError {
    /// The bounded mailbox has no room; the message was not queued.
    #[error("mailbox is full")]
    Full,
    /// The actor has stopped for good, or nobody is connected.
    #[error("actor is gone")]
    Gone,
}
model::tolerant!(TellError, else TellError::Gone);

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum AskError {
    /// The message never reached a turn: the actor is gone, or nobody is connected. Safe to ask again.
    #[error("not delivered")]
    NotDelivered,
    /// The mailbox had no room until the deadline. Safe to ask again.
    #[error("mailbox had no room in time")]
    Overloaded,
    /// The actor died, or stopped, while it worked on the message: whether the effect happened is unknown.
    #[error("actor crashed while it worked on the message")]
    Crashed,
    /// No answer until the deadline. When not `started`, the message will never be handled.
    #[error("no answer in time{}", if *started { "" } else { ", never started" })]
    Timeout {
        /// Whether the turn had begun.
        started: bool,
    },
}
// Whatever a newer peer says: that nothing is known of the effect is never wrong.
model::tolerant!(AskError, else AskError::Crashed);

/// An error with all its sources, joined by `": "`.
pub fn chain(err: &dyn Error) -> String {
    let mut text = err.to_string();
    let mut source = err.source();
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}
