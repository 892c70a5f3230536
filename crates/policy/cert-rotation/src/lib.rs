//! Which certificates a node needs, when it needs new ones, and what they and their requests are called
//! (interfaces 3.9, 3.10).
//!
//! Owns: templates of the client and the serving certificate, reading of certificates, the rotation deadline, pauses between
//! failed requests, the decision to start anew, names of files and of bootstrap requests.
//! Never makes a key, reads a file or a clock, or draws a random number: all of that comes in.

#![forbid(unsafe_code)]

pub mod certificate;
mod files;
pub mod rotation;
pub mod template;

#[cfg(test)]
mod tests;

pub use certificate::{Facts, Parts, PemError};
pub use files::Files;
pub use template::Template;
