//! StatusManager: the version of each pod's status.
//!
//! **Owns** the versioned status of every pod, static pods under their own UID (pod-lifecycle 9.6). The only poster of the
//! status board.
//! **Asks** nobody; reads nothing. What goes to the API server is read from the board by a syncer beside this actor,
//! through `pod_status::merge::for_api`.
//! **Never** computes a phase or looks at the runtime: workers do, and hand the result in.
//! **Lost on restart** is nothing: entries are read back from the board, which lives in the wiring.
//! **Read next** `store.rs` (pure), then `actor.rs`.

#![forbid(unsafe_code)]

mod actor;
mod store;

#[cfg(test)]
mod tests;

pub use crate::actor::{StatusManager, connect};
pub use crate::store::{Outcome, Statuses};
