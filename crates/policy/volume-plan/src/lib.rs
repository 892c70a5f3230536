//! What a node does for volumes that outlive pods: which volume a claim stands for, whether this pod may have it here, what a
//! CSI driver is told, and what follows from its answers.
//!
//! Owns the rules of node-and-resources 6.2 (claims, kinds that drivers took over), 6.3 (checks before a mount), 6.13 (CSI, growing),
//! 10.1 (classes of errors) and 10.7 (which ids the users of a pod are).
//! Never asks for an object and never touches a file: callers fetch and do.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod attach;
pub mod backoff;
pub mod claim;
pub mod csi;
pub mod data;
pub mod fc;
pub mod growth;
pub mod iscsi;
pub mod lun;
pub mod migration;
pub mod names;
pub mod selinux;
pub mod share;
pub mod source;
pub mod state;
pub mod userns;
pub mod volume;

#[cfg(test)]
mod tests;
