//! PodManager: the pods that should be here, by UID.
//!
//! **Owns** the last full set of each source, the arrival order of static pods, and one `PodWorker` per UID.
//! **Asks** PodWorker, RuntimeClient (orphans, garbage), Status-, Probe-, Volume-, CgroupManager (leftovers), EventRecorder.
//! **Never** starts or stops a container of a desired pod itself; never deletes what it cannot prove is nobody's.
//! **Lost on restart** is nothing: desired pods are read back from the published board, workers from theirs, and every
//! source sends its full set again.
//! **Read next** `merge.rs`, `housekeeping.rs`, `gc.rs` (pure), then `actor.rs`.

#![forbid(unsafe_code)]

mod actor;
mod admission;
mod effects;
pub mod gc;
pub mod housekeeping;
pub mod merge;

pub use crate::actor::{Config, Deps, PodManager};
pub use crate::admission::Admission;
