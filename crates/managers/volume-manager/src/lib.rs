//! VolumeManager: volumes of pods, and the directories that pods have on this node.
//!
//! **Owns** `<root>/pods/<uid>` (layout of node-and-resources 6.1), `<root>/plugins/kubernetes.io/csi`, what local volumes have
//! below `<root>/plugins`, and every mount and loop device there.
//! **Asks** ObjectStore for what volumes hold, and follows its board; the API server for claims and what they are bound to; CSI drivers that
//! PluginManager posts. Reads from the Node what is attached, posts what must stay so ([`contract::volume::VolumesInUse`]), tells EventRecorder.
//! **Never** crosses a mount point while it deletes, and never deletes what it cannot prove to be its own: content goes only
//! with the marker that set-up left, or when the pod's own worker says that the pod has ended.
//! **Lost on restart** is nothing: directories, markers and the mount table say what is there; which pods are to be kept in
//! line with their objects stands in [`DesiredVolumes`], and what is known of volumes of drivers in [`Volumes`], outside of the
//! actor. Waits under way end with the actor, and their askers ask again. A `vol_data.json` that is on the disk before a driver is called
//! tells every later daemon what may have to be undone.
//! **Read next** `spec.rs` (which volumes, what kind), `attempt.rs`, `set_up.rs`, `projected.rs` (volumes of API objects),
//! `tear_down.rs`, then `mount.rs`, `refresh.rs` (running pods), `persistent.rs` (claims and drivers) and `actor.rs`.
//!
//! Kinds so far: emptyDir (all media), hostPath, configMap, secret, downwardAPI, projected; CSI volumes with a file system and raw
//! ones, hostPath, local directories and disks behind claims; CSI volumes that stand in pods, and kinds that CSI drivers took over;
//! NFS, iSCSI and Fibre Channel. Other kinds are refused by name.

#![forbid(unsafe_code)]

mod abilities;
mod actor;
mod attempt;
mod board;
mod class;
mod deps;
mod desired;
mod device_map;
mod empty_dir;
mod failed;
mod fetch;
mod host_path;
mod layout;
mod listing;
mod lun_dir;
mod measure;
mod mount;
mod ownership;
mod persistent;
mod placed;
mod progress;
mod projected;
mod references;
mod refresh;
mod registry;
mod set_up;
mod spec;
mod sub_path;
mod task;
mod tear_down;
mod unreadable;
mod user_ids;

#[cfg(test)]
mod tests;

pub use crate::actor::VolumeManager;
pub use crate::deps::{Config, Deps, Serial};
pub use crate::desired::DesiredVolumes;
pub use crate::registry::Volumes;
pub use crate::user_ids::{IdRules, UserIds};
pub use volume_plan::selinux::{SeLinux, files_context};
