//! OomWatcher: tells when the machine itself ran out of memory.
//!
//! **Owns** what the kernel's log says of processes that it killed, and how far that was told (one line of the journal).
//! **Asks** EventRecorder to record `SystemOOM` of the node (pod-lifecycle 11).
//! **Never** tells of a container that met its own limit: its status says so (`OOMKilled`, by the runtime), its cgroup counts it.
//! **Lost on restart** is nothing: the log is read again, and what was told is passed over, also by the next daemon in the
//! same boot. A death between telling and noting it tells twice.
//! **Read next** `kill.rs`: what the lines mean; then `actor.rs`.

#![forbid(unsafe_code)]

mod actor;
mod kill;
mod told;

#[cfg(test)]
mod tests;

pub use crate::actor::{Deps, OomWatcher};
