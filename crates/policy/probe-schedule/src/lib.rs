//! When a probe runs and what its outcomes add up to (pod-lifecycle 8), as pure state machines.
//!
//! Owns: the decisions of one tick ([`Worker::tick`]), thresholds ([`Worker::finish`]), the order in which many probes come
//! due ([`Schedule`]), what a probe is aimed at ([`target`]) and the words of its events ([`words`]). Never: a clock, a
//! socket, a failure.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod schedule;
mod seen;
mod settings;
pub mod target;
pub mod words;
mod worker;

pub use schedule::{First, Schedule, first, until_place};
pub use seen::{Life, Seen, SeenContainer, told};
pub use settings::{Settings, probes_of};
pub use worker::{Change, Idle, Next, Tick, Times, Worker};

#[cfg(test)]
mod tests;
