//! ObjectStore: configMaps, secrets, tokens, certificates, trust anchors and services that pods use.
//!
//! **Owns** one followed selection per referenced object, counted by the pods that hold it, and one for all trust bundles; the
//! services; the runtime classes; tokens and certificates of pods.
//! **Asks** the API server; tells EventRecorder of certificates that are refused or late. **Never** asks another manager, never follows what no pod here names, never remembers a
//! refusal.
//! **Lost on restart** are the tokens (asked for again) and what is followed (followed again); holds, certificates and the objects seen
//! stand in the [`ObjectCache`], which outlives the actor. With a [`SealedCache`] they outlive the daemon, and serve while the
//! API server is away.
//! **Read next** `holds.rs`, `tokens.rs` and `follow.rs` (pure), then `actor.rs` and the files below it.

#![forbid(unsafe_code)]

mod actor;
mod bundles;
mod cache;
mod certificates;
mod deps;
mod fetch;
mod follow;
mod holds;
mod keys;
mod lists;
mod persist;
mod sealed;
mod services;
mod tokens;

#[cfg(test)]
mod tests;

pub use crate::actor::ObjectStore;
pub use crate::cache::ObjectCache;
pub use crate::deps::{Config, Deps, Strategy};
pub use crate::sealed::SealedCache;
