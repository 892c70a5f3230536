//! RuntimeClient: the one actor that talks to the container runtime.
//!
//! Owns: the calls (each in its lane, under its deadline, on the pool), and the view of what the runtime has, made of own
//! calls, events and relists. Never decides what should run, never retries a call for its asker, never touches images.
//! After a restart it knows nothing and looks again; the view outlives it.

#![forbid(unsafe_code)]

mod client;
mod lanes;
mod look;
mod message;
mod seen;

pub use client::{Config, Deps, RuntimeClient};
pub use lanes::Lanes;

/// How CRI statuses are read; open to fuzzing, as runtimes are not ours.
pub mod reading {
    pub use crate::seen::map::{container, names, sandbox};
}
