//! RuntimeClient: the one actor that talks to the container runtime.
//!
//! Owns: the calls (each within its limit, under its deadline, on the pool), and the view of what the runtime has, made of
//! own calls, events and relists. Never decides what should run, never retries a call for its asker, never touches images.
//! After a restart it knows nothing and inspects all pods again; the view outlives it.
//! Read next: `client.rs`, `client/calls.rs`, `requests.rs` and `client/inspections.rs` (how a pod's row is made), `view.rs`.

#![forbid(unsafe_code)]

mod client;
mod deps;
mod error;
mod index;
mod inspect;
mod limits;
mod link;
mod message;
mod pool;
mod relisting;
mod requests;
mod subscription;
mod view;

pub use client::RuntimeClient;
pub use deps::{Config, Deps};
pub use limits::CallLimits;

/// How CRI statuses are read; open to fuzzing, as runtimes are not ours.
pub mod reading {
    pub use crate::view::map::{container, names, sandbox};
}
