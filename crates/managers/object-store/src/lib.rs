//! ObjectStore: configMaps, secrets, tokens and services that pods of this node use.
//!
//! **Owns** one followed selection per referenced object, counted by the pods that hold it; the services; the runtime
//! classes; the tokens of pods.
//! **Asks** the API server only. **Never** asks another manager, never follows what no pod here names, never remembers a
//! refusal.
//! **Lost on restart** are the tokens (asked for again) and what is followed (followed again); holds and the objects seen
//! stand in the [`Ledger`], which outlives the actor. With a [`Sealed`] cache they outlive the daemon, and serve while the
//! API server is away.
//! **Read next** `holds.rs` and `tokens.rs` (pure), then `actor.rs` and `follow.rs`.

#![forbid(unsafe_code)]

mod actor;
mod fetch;
mod follow;
mod holds;
mod keep;
mod ledger;
mod sealed;
mod services;
mod tokens;

#[cfg(test)]
mod tests;

pub use crate::actor::{Config, Deps, ObjectStore, Strategy};
pub use crate::ledger::Ledger;
pub use crate::sealed::Sealed;
