//! Where the kernel's files of a cgroup are.

use std::path::PathBuf;

use super::dir::Dir;
use crate::cgroup::{Hierarchy, checked};

#[derive(Clone, Debug)]
pub(super) struct Roots {
    pub(super) hierarchy: Hierarchy,
    /// `/proc`.
    pub(super) proc: PathBuf,
}

impl Roots {
    /// Path of a cgroup in the hierarchy of a controller.
    pub(super) fn path(&self, controller: &str, path: &str) -> Option<PathBuf> {
        let below = checked(path).ok()?;
        let mount = match &self.hierarchy {
            Hierarchy::V1(mounts) => mounts.get(controller)?,
            Hierarchy::V2(root) => root,
        };
        // Joined with an empty path it ends in a slash, which is the same directory.
        Some(mount.join(below))
    }

    /// Directory of a cgroup in the hierarchy of a controller.
    pub(super) fn dir(&self, controller: &str, path: &str) -> Option<Dir> {
        Dir::open(&self.path(controller, path)?)
    }
}
