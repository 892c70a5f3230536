//! EventRecorder: aggregation and spam filter of Events, as a kubelet's event client does them (interfaces 8.10).
//!
//! **Owns** the list of recent events (bounded) and the counters behind it. Logs each one that it lets through.
//! **Asks** nobody; reads nothing. Events for the API server are taken from the view by a syncer beside this actor.
//! **Never** makes events of its own, and never delays who reports one: [`contract::event::EventHandle::emit`] is a tell.
//! **Lost on restart** are the credits of the spam filter and, for the aggregation, the texts that were seen: the list
//! and its counts are read back from the view.
//! **Read next** `correlate.rs` (pure), then `actor.rs`.

#![forbid(unsafe_code)]

mod actor;
mod correlate;
mod recent;

#[cfg(test)]
mod tests;

pub use crate::actor::{Config, EventRecorder, connect};
pub use crate::correlate::{Correlator, Verdict};
