//! Whether an image must be pulled, how its name is read, how fast pulls may come, and what the user is told.
//!
//! Owns the rules and texts of pod-lifecycle 5.3. Never pulls, waits or looks at a clock. Of the credential records of 5.4
//! only the outcome for pods without pull secrets is here: with the default policy (`NeverVerifyPreloadedImages`) an image
//! that is present may be used, since every pull of this node was made without credentials of a pod. Records that a
//! kubelet left behind for images pulled with a secret are not read yet.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod decision;
mod limiter;
pub mod reference;
pub mod text;

#[cfg(test)]
mod tests;

pub use decision::{Look, PullFailure, PullPolicy, Verdict, classify, look};
pub use limiter::Limiter;
