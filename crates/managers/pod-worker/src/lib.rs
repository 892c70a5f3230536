//! PodWorker: one actor per pod UID that makes the pod run as its specification says, and stops it in the end.
//!
//! **Owns** where one pod is in its life, why its containers wait, and their crash back-off.
//! **Asks** RuntimeClient, Image-, Volume-, Cgroup-, Probe-, StatusManager, ObjectStore, EventRecorder. **Reads** the boards of
//! runtime, probes, status, cgroups and node.
//! **Never** runs two steps at once; never starts a container once stopping has begun.
//! **Lost on restart** is nothing that matters: phase, pod and kill request stand on the worker's board row, back-off in the
//! journal, the rest in the runtime.
//! **Read next** `machine.rs` (pure), `actor.rs`, then `sync.rs`, `apply.rs`, `start.rs` and `terminate.rs`.

#![forbid(unsafe_code)]

mod actor;
mod apply;
mod chronicle;
mod config;
mod deps;
mod files;
mod hooks;
mod job;
mod kill;
pub mod machine;
mod measure;
mod memo;
mod node;
mod objects;
mod resize;
mod start;
mod status;
mod sync;
mod terminate;
mod told;
mod traced;

#[cfg(test)]
mod tests;

pub use crate::actor::PodWorker;
pub use crate::deps::{Config, Deps};
pub use crate::memo::Record;
