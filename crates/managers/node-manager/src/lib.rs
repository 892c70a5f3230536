//! NodeManager: the Node object of this machine and its lease.
//!
//! **Owns** registration, the node status and when it is reported, and (an actor of its own, [`NodeLease`]) the lease.
//! **Asks** RuntimeClient to tell the runtime the networks of pods; tells EventRecorder; reads RuntimeClient's view and the host; publishes [`contract::node::NodeView`].
//! **Answers** PluginManager: what a CSI driver calls the node is put onto the Node, with the labels of its topology.
//! **Never** changes taints, foreign labels or the spec of a Node that exists, and never writes `Ready=False` because the
//! daemon itself has just begun: it waits for the runtime's word first.
//! **Lost on restart** is when the status was reported last (one report too many).
//! **Read next** `actor.rs`, then `state.rs`, `sync.rs`, `requests.rs`, `lease.rs`; what the Node says is decided in `policy/node-status`.

#![forbid(unsafe_code)]

mod actor;
mod config;
mod drivers;
mod health;
mod lease;
mod networks;
mod observe;
mod requests;
mod state;
mod sync;

#[cfg(test)]
mod tests;

pub use crate::actor::NodeManager;
pub use crate::config::{Config, Deps};
pub use crate::lease::{LeaseConfig, LeaseDeps, NodeLease};
