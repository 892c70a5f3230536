//! What volumes made of API objects hold, and which API objects a pod needs.
//!
//! Owns the rules of node-and-resources 6.9 and 6.10: references, payloads, modes, texts of what is missing, and the plan of
//! the atomic writer. Never fetches an object and never touches a file.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod references;

pub use references::{ObjectKind, ObjectRef, references};
