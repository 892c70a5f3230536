//! EventRecorder: aggregation and spam filter of Events, as a kubelet's event client does them (interfaces 8.10).
//!
//! **Owns** the list of recent events (bounded), the counters behind it, and the queue of events on their way to the API
//! server. Logs each one that it lets through.
//! **Asks** nobody but the API server; reads PodManager's board (which version of a pod an event is about).
//! **Never** makes events of its own, and never delays who reports one: [`contract::Crew::emit`] is a tell.
//! **Lost on restart** is nothing: the list is read back from the view; counts, credits and the queue are made once, by who starts it ([`Memory`],
//! [`Outbox`]). Another recorder in its place begins with credits of its own, and goes on with the counts of the view.
//! **Read next** `correlate.rs`, `outbox.rs`, `wire.rs` (pure), then `memory.rs` and `actor.rs`.

#![forbid(unsafe_code)]

mod actor;
mod correlate;
mod memory;
mod outbox;
mod recent;
mod wire;

#[cfg(test)]
mod tests;

pub use crate::actor::{Config, EventRecorder, Sink};
pub use crate::correlate::{Correlator, Verdict};
pub use crate::memory::Memory;
pub use crate::outbox::Outbox;
pub use crate::wire::Reporter;
