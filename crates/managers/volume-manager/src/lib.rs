//! VolumeManager: volumes of pods, and the directories that pods have on this node.
//!
//! **Owns** `<root>/pods/<uid>` (layout of node-and-resources 6.1) and every mount below it.
//! **Asks** ObjectStore for what volumes hold, and follows its board; tells EventRecorder.
//! **Never** crosses a mount point while it deletes, and never deletes what it cannot prove to be its own: content goes only
//! with the marker that set-up left, or when the pod's own worker says that the pod has ended.
//! **Lost on restart** is nothing: directories, markers and the mount table say what is there; which pods are to be kept in
//! line with their objects stands in [`DesiredVolumes`], outside of the actor. Waits under way end with the actor, and their askers
//! ask again.
//! **Read next** `spec.rs` (which volumes, what kind), `set_up.rs`, `projected.rs` (volumes of API objects),
//! `tear_down.rs`, then `mount.rs`, `refresh.rs` (running pods) and `actor.rs`.
//!
//! Kinds so far: emptyDir (all media), hostPath, configMap, secret, downwardAPI, projected. Other kinds are refused by name.

#![forbid(unsafe_code)]

mod actor;
mod board;
mod class;
mod deps;
mod desired;
mod empty_dir;
mod fetch;
mod layout;
mod measure;
mod mount;
mod ownership;
mod projected;
mod refresh;
mod set_up;
mod spec;
mod sub_path;
mod tear_down;

#[cfg(test)]
mod tests;

pub use crate::actor::VolumeManager;
pub use crate::deps::{Config, Deps, Serial};
pub use crate::desired::DesiredVolumes;
