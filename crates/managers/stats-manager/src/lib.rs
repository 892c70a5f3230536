//! StatsManager: what the node, its pods and containers use.
//!
//! **Owns** the gathering of readings and statistics when somebody asks, the samples that rates are made of, and what
//! volumes took when they were last measured.
//! **Asks** nobody of the crew; calls the runtime for what only it knows; reads the boards of RuntimeClient, PodManager,
//! CgroupManager and VolumeManager.
//! **Never** writes anything, and measures nobody while nobody asks.
//! **Lost on restart** are samples (a rate needs two of them again) and measured volumes.
//! **Read next** `actor.rs`, then `gather.rs` and what it lists.

#![forbid(unsafe_code)]

mod actor;
mod config;
mod gather;
mod persistent;
mod slot;
mod volumes;

#[cfg(test)]
mod tests;

pub use crate::actor::StatsManager;
pub use crate::config::{Config, Deps};

/// How numbers of drivers are read; open to fuzzing, as drivers are not ours.
pub mod reading {
    pub use crate::persistent::usage;
}
