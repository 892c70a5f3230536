//! A whole node in this process, on a virtual clock: every actor of the crew, wired as in life, between fakes of what lies
//! outside.
//!
//! **Owns** nothing of the node's behaviour. [`World`] is what outlives the daemon (runtime, journal, cgroups, files);
//! [`SimNode`] is the daemon in it, which can be killed and started again. Nothing of it is real: no file, no thread, no
//! clock.
//! **Read next** `node.rs`, then `see.rs` for what a test can look at.

#![forbid(unsafe_code)]

mod busy;
mod leash;
mod node;
mod see;
mod world;

pub use busy::busy_minutes;
pub use node::{LIMIT, SimNode, log_to_stderr};
pub use see::{Counts, Instance};
pub use world::{DISK, NODE_NAME, POD_URL, World};
