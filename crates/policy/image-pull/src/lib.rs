//! Whether an image must be pulled, how its name is read, how fast pulls may come, and what the user is told.
//!
//! Owns the rules and texts of pod-lifecycle 5.3, and which images make room (node-and-resources 4.1). Never pulls, waits or
//! looks at a clock. Credentials and who may use what others pulled (pod-lifecycle 5.4) are policy/pull-credentials.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod decision;
pub mod gc;
mod limiter;
pub mod reference;
pub mod text;

#[cfg(test)]
mod tests;

pub use decision::{PullFailure, PullPolicy, Verdict, classify};
pub use limiter::Limiter;
