//! The Node object of this machine, its status and its lease, as pure functions (node-and-resources 8;
//! interfaces 8.9, 9.3).
//!
//! Owns what a new Node looks like, what is reconciled on one that exists, how status follows from facts, what counts as a
//! change, the patch that carries it, and when it is due. Never reads a host or a clock.

#![forbid(unsafe_code)]

pub mod address;
mod change;
mod conditions;
pub mod csi;
mod facts;
pub mod lease;
mod patch;
mod ready;
mod register;
mod report;
mod setters;

pub use change::changed;
pub use conditions::{aggregate, event};
pub use facts::{Facts, Image, Machine, Plan, RuntimeVersion};
pub use patch::patch;
pub use ready::{RuntimeHealth, ready_errors};
pub use register::{initial, reconciled, without_devices};
pub use report::Reporting;
pub use setters::{pod_networks, updated};

#[cfg(test)]
mod tests;
