//! bosun: the node daemon and its command line.
//!
//! **Charter** puts the crew together and runs it. **Owns** wiring, supervision groups, start-up and shutdown order; no
//! behaviour of its own.
//! **Read next** `node.rs`: reading it top to bottom is reading the architecture.

#![forbid(unsafe_code)]

pub mod cli;
pub mod node;
pub mod providers;
mod run;
pub mod settings;

pub use node::{Builder, Node, Ports, Setup};
pub use settings::{Machine, Settings};
