//! CgroupManager: the QoS tree and the cgroups of pods.
//!
//! **Owns** `kubepods`, its tiers and the pod cgroups below them, with their limits; moves the daemon and processes of the system
//! where the operator wants them.
//! **Asks** nobody; tells EventRecorder; reads PodManager's board (whose requests the burstable tier counts).
//! **Never** touches a container's leaf cgroup, the configured root, or anything that is not named like a pod's.
//! **Lost on restart** is nothing: which pods have a cgroup is read from the tree, what they request from the board.
//! **Read next** `state.rs`, then `actor.rs`, then `effects.rs`.

#![forbid(unsafe_code)]

mod actor;
mod config;
mod effects;
mod state;

#[cfg(test)]
mod tests;

pub use crate::actor::{CgroupManager, Deps};
pub use crate::config::{Config, ReservedCgroup};
/// Order among the effects on one pod; made once for the life of the node.
pub type Serial = ::actor::Serial<model::PodUid>;
