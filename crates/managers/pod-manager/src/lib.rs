//! PodManager: the pods that should be here, by UID.
//!
//! **Owns** the last full set of each source, the arrival order of static pods, their mirror pods in the API, and one
//! `PodWorker` per UID.
//! **Asks** PodWorker, RuntimeClient (orphans, garbage), Status-, Probe-, Volume-, CgroupManager (leftovers), ObjectStore
//! (what pods hold), EventRecorder; the API server about mirror pods.
//! **Never** starts or stops a container of a desired pod itself; never deletes what it cannot prove is nobody's.
//! **Lost on restart** is nothing: desired pods are read back from the published board, workers from theirs, and every
//! source sends its full set again.
//! **Read next** `merge.rs`, `mirror.rs`, `housekeeping.rs`, `gc.rs` (pure), then `actor.rs`.

#![forbid(unsafe_code)]

mod actor;
pub mod admission;
mod effects;
pub mod gc;
pub mod housekeeping;
pub mod merge;
pub mod mirror;
mod mirrors;
mod objects;

#[cfg(test)]
mod tests;

pub use crate::actor::{Config, Deps, PodManager};
