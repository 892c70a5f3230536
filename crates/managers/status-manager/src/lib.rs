//! StatusManager: the version of each pod's status, and the only writer of statuses to the API server.
//!
//! **Owns** the versioned status of every pod, static pods under their own UID (pod-lifecycle 9.6), as the only poster of
//! the status board; beside it [`StatusSyncer`] owns what the API server has been sent (pod-lifecycle 9.7, 9.8).
//! **Asks** nobody but the API server. The syncer reads the status board, PodManager's board (the API's copy of each pod, or
//! of the mirror of a static pod) and the workers' board (may containers run?).
//! **Never** computes a phase or looks at the runtime: workers do, and hand the result in. Never polls the API server.
//! **Lost on restart** is nothing: entries are read back from the board, which lives in the wiring; what the API server has
//! not taken stands in the journal (`status/<uid>`) within a second and outlives the daemon. What it has taken is found by
//! comparing with its copy: an equal status is not sent again.
//! **Read next** `store.rs` (pure), `actor.rs`; then `pod_sync.rs` (pure: what is due for one pod), `request.rs`,
//! `syncer.rs`.

#![forbid(unsafe_code)]

mod actor;
mod copy;
mod journal;
mod pod_sync;
mod request;
mod store;
mod syncer;
mod unknown_fields;

#[cfg(test)]
mod tests;

pub use crate::actor::StatusManager;
pub use crate::store::{Outcome, Statuses};
pub use crate::syncer::{StatusSyncer, SyncerConfig, SyncerDeps};
