//! VolumeManager: volumes of pods, and the directories that pods have on this node.
//!
//! **Owns** `<root>/pods/<uid>` (layout of node-and-resources 6.1) and every mount below it.
//! **Asks** nobody; tells EventRecorder.
//! **Never** crosses a mount point while it deletes, and never deletes what it cannot prove to be its own: content goes only
//! with the marker that set-up left, or when the pod's own worker says that the pod has ended.
//! **Lost on restart** is nothing: directories, markers and the mount table say what is there. Waits under way end with the
//! actor, and their askers ask again.
//! **Read next** `wanted.rs` (which volumes, what kind), `set_up.rs`, `tear_down.rs`, then `actor.rs`.
//!
//! Kinds so far: emptyDir (all media) and hostPath. Other kinds are refused by name; what a kubelet left of the ones that
//! live in memory (configMap, secret, projected, downwardAPI) is torn down all the same.

#![forbid(unsafe_code)]

mod actor;
mod layout;
mod ownership;
mod set_up;
mod sub_path;
mod tear_down;
mod wanted;

#[cfg(test)]
mod tests;

pub use crate::actor::{Config, Deps, VolumeManager};
/// Order among the effects on one pod; made once for the life of the node.
pub type Serial = ::actor::Serial<model::PodUid>;
