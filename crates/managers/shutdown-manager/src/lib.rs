//! ShutdownManager: ends pods in their order before the machine goes down (node-and-resources 8.6).
//!
//! **Owns** the lock that holds a shutdown back, and how far the pods are when one comes.
//! **Asks** PodManager to have pods stopped, EventRecorder to record `Shutdown`.
//! **Never** stops a pod itself, nor decides what its status says: its worker does. Without a period in the configuration it
//! does nothing at all.
//! **Lost on restart** is nothing: how far it is stands on its own board, the lock is held outside of it ([`Hold`]), whom it told
//! is seen on the workers' board, and logind says whether the machine still goes down.
//! **Read next** `node_shutdown`, the rules; `session.rs`: what it has of logind; `actor.rs`: one shutdown.

#![forbid(unsafe_code)]

mod actor;
mod deps;
mod session;
mod times;

#[cfg(test)]
mod tests;

pub use crate::actor::ShutdownManager;
pub use crate::deps::{Config, Deps, Hold, Turn};
