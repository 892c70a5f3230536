//! What volumes made of API objects hold, and which API objects a pod needs.
//!
//! Owns the rules of node-and-resources 6.9, 6.10: references, payloads, modes, texts of what is missing, and the plan of
//! the atomic writer. Never fetches an object and never touches a file: callers fetch what [`needs`] names, make the
//! [`payload`], and carry out the steps of [`atomic::plan`].

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod anchors;
pub mod atomic;
mod needs;
mod nested;
mod owner;
mod path;
mod payload;
mod pem;
pub mod references;

pub use needs::{Credential, Fetched, Missing, Needs, SourceSlot, TokenSlot, needs, tokens};
pub use nested::nested_mount_points;
pub use owner::fs_user;
pub use path::{PathError, clean};
pub use payload::{
    Allocatable, DownwardApi, Payload, PayloadInput, ProjectedFile, config_map_files, payload, secret_files,
};
pub use pem::clean_chain;
pub use references::references;

#[cfg(test)]
mod fixture;
