//! PodManager: the pods that should be here, by UID.
//!
//! **Owns** the last full set of each source, the arrival order of static pods, their mirror pods in the API, and one
//! `PodWorker` per UID.
//! **Asks** PodWorker, RuntimeClient (orphans, garbage), Status-, Probe-, Volume-, CgroupManager (leftovers), ObjectStore
//! (what pods hold), VolumeManager (claims of pods that start), EventRecorder; the API server about mirror pods.
//! **Never** starts or stops a container of a desired pod itself; never deletes what it cannot prove is nobody's.
//! **Lost on restart** is nothing: desired pods are read back from the published board, workers from theirs, and every
//! source sends its full set again. A pod that was not decided about, or waited for others to go, is decided about anew.
//! **Read next** the rooms, each with its state and its pure decisions: `desired.rs`, `admission.rs`, `workers.rs`,
//! `mirrors.rs`, `housekeeping.rs`, `garbage.rs`; then `actor.rs`, which brings them together.

#![forbid(unsafe_code)]

mod actor;
mod admission;
mod allocation;
mod deps;
mod desired;
mod garbage;
mod housekeeping;
mod mirrors;
mod preemption;
mod workers;

#[cfg(test)]
mod tests;

pub use crate::actor::PodManager;
pub use crate::deps::{Config, Deps};
pub use crate::garbage::GcPolicy;
