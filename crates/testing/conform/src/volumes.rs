//! The contract of VolumeManager: `contract::volume`, and the rules of node-and-resources 6.
//!
//! Tried are volumes of pods that need nothing but files and mounts: emptyDir, hostPath, configMap, secret, downwardAPI, projected;
//! not those behind claims and CSI drivers. The manager works on the node's root directory itself: that is on a disk in memory, or a
//! folder that a program finds in `BOSUN_ROOT_DIR`. What takes mounts is played in this process only, for the machine's sake.

mod bed;
mod content;
mod ends;
mod faults;
mod places;
mod users;

use contract::VolumeManager;

use crate::case::Case;

/// All cases of the role.
#[must_use]
pub fn cases() -> Vec<Case<VolumeManager>> {
    [places::cases(), content::cases(), users::cases(), ends::cases(), faults::cases()].into_iter().flatten().collect()
}
