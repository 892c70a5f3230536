//! bosun: the node daemon and its command line.
//!
//! **Charter** puts the crew together and runs it. **Owns** wiring, supervision groups, start-up and shutdown order; no
//! behaviour of its own.
//! **Read next** `node.rs`: reading it top to bottom is reading the architecture.

#![forbid(unsafe_code)]

pub mod cli;
pub mod node;
mod own_runtime;
pub mod providers;
mod run;
pub mod settings;

pub use node::{Builder, HANDOVER, Node, Places, Ports, Setup};
pub use settings::{Machine, Settings};
/// What a manager of one's own is written with, so that its crate needs this one alone.
pub use {actor, contract, model, ports};
