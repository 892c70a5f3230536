//! Traits for what lies outside of the node daemon. Adapters implement them, managers use them, fakes stand in for them.
//!
//! No implementation lives here, and no trait names the library that serves it.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod api;
pub mod credential;
pub mod csi;
pub mod fetch;
pub mod grpc;
pub mod hook;
pub mod host;
pub mod iptables;
pub mod journal;
pub mod kernel_log;
pub mod log;
pub mod logind;
pub mod memory_alarm;
pub mod plugin;
pub mod probe;
pub mod runtime;
pub mod stats;
pub mod watch;
