//! Pulls images from registries into the node's own store (OCI distribution-spec, and what Docker's registry does beside it).
//!
//! **Owns** the connections of a pull, its tokens, its retries; which hosts are asked is read anew for each pull (`hosts.toml`, as containerd has
//! it). Nothing outlives a pull but what is in the store: two pulls with different credentials share no token and no connection.
//! **Never** takes a byte into the store that its digest does not vouch for, never gives credentials to a host that a redirect leads to, never waits
//! without a deadline, never holds a layer in memory.
//! **Lost on a crash**: nothing that came; the next pull goes on with the parts.
//! **Read next** `pull.rs`, `hosts.rs`, `tests/faults.rs`.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod auth;
mod backoff;
mod blob;
mod challenge;
mod client;
mod connect;
mod endpoint;
mod error;
mod fetch;
pub mod hosts;
mod manifest;
mod progress;
mod pull;
mod settings;
mod work;

#[cfg(test)]
mod tests;

pub use auth::Credentials;
pub use endpoint::{Endpoint, TlsFiles};
pub use error::{Failure, HostFailure, PullError};
pub use progress::{LayerProgress, Phase, Progress};
pub use pull::{Puller, Request};
pub use settings::{Deadlines, Settings};
