//! LogManager: keeps the logs of running containers within their limits.
//!
//! **Owns** the rotation of log files: what is renamed, compressed and deleted beside a container's log, and when the
//! runtime is told to open it anew (interfaces 4.5).
//! **Asks** the runtime to reopen logs; reads the runtime board, which tells what runs and where its log is.
//! **Never** touches the log of a container that does not run, deletes the log of a removed one (PodManager and PodWorker
//! do), or reads a log.
//! **Lost on restart** is nothing: each round looks at the files. A rotation that died between its steps is seen there: a
//! log that is missing is opened anew, half a compressed file is removed.
//! **Read next** `actor.rs`, then `rotate.rs`; the plan of a rotation is policy `container-log`, module `rotation`.

#![forbid(unsafe_code)]

mod actor;
mod deps;
mod rotate;

#[cfg(test)]
mod tests;

pub use crate::actor::LogManager;
pub use crate::deps::{Config, Deps, Serial};
