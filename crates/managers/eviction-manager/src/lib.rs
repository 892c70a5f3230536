//! EvictionManager: what runs short on the node, and which pods go because of it (node-and-resources 3).
//!
//! **Owns** what was observed of memory, disks and processes, which thresholds are crossed since when, and the node's pressure
//! conditions.
//! **Asks** StatsManager what pods use, PodManager to remove dead containers and to end a pod, ImageManager to remove images,
//! EventRecorder; reads which pods are here and how far their workers are; publishes [`contract::eviction::NodePressure`], and for
//! people [`contract::eviction::PressureView`].
//! **Never** ends a critical pod, nor a second pod for what the end of the first may have relieved; never has memory wait for a
//! disk; never measures pods while nothing runs short and no pod limits its own disk.
//! **Lost on restart** is for how long a threshold has been crossed: a soft one begins its grace anew. Conditions are taken over
//! from the board, and last for the transition period from then on. A pod that was being ended goes on ending; one whose order
//! nobody had answered is found on the workers' board.
//! **Read next** `actor.rs`, then `memory.rs` and `others.rs` (one pass each, from look to end) and `orders.rs`; what follows from
//! what is decided in `policy/eviction`.

#![forbid(unsafe_code)]

mod actor;
mod alarm;
mod config;
mod disks;
mod evict;
mod lane;
mod measure;
mod memory;
mod notifications;
mod observe;
mod orders;
mod others;
mod reclaim;
mod unseen;
mod view;

#[cfg(test)]
mod tests;

pub use crate::actor::EvictionManager;
pub use crate::config::{Config, Deps};
