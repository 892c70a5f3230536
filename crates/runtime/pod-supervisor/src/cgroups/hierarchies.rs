//! Hierarchies of cgroups, as the node has them mounted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A hierarchy, where it is mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hierarchy {
    /// Which of its groups is seen at the top.
    pub(super) root: PathBuf,
    pub(super) at: PathBuf,
    /// Options of the file system: its controllers, or its name. `None`: version 2.
    pub(super) controllers: Option<Vec<String>>,
}

/// All hierarchies in the node's `/proc/self/mountinfo`. That has a line for each mount of each pod, so it is not read for each container.
pub(super) fn hierarchies(mountinfo: &str) -> Vec<Hierarchy> {
    mountinfo.lines().filter_map(Hierarchy::of).collect()
}

/// Those of this node.
///
/// # Errors
/// Its mounts cannot be read.
pub fn hierarchies_here() -> io::Result<Vec<Hierarchy>> {
    Ok(hierarchies(&fs::read_to_string("/proc/self/mountinfo")?))
}

/// Whether each group in `/proc/PID/cgroup`, but for the top of a hierarchy, is one of a hierarchy that is known.
pub(crate) fn has_all(cgroup: &str, hierarchies: &[Hierarchy]) -> bool {
    let mut groups = cgroup.lines().filter_map(parts);
    groups.all(|(controllers, path)| path == "/" || hierarchies.iter().any(|h| h.has(controllers)))
}

/// Controllers and path of a line of `/proc/PID/cgroup`.
pub(super) fn parts(line: &str) -> Option<(&str, &str)> {
    line.split_once(':')?.1.split_once(':')
}

impl Hierarchy {
    /// Whether it is mounted there.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        self.at == path
    }

    fn of(line: &str) -> Option<Self> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, at) = (mount.next()?.into(), mount.next()?.into());
        let mut kind = kind.split(' ');
        let controllers = match kind.next()? {
            "cgroup" => Some(kind.nth(1)?.split(',').map(str::to_owned).collect()),
            "cgroup2" => None,
            _ => return None,
        };
        Some(Self { root, at, controllers })
    }

    /// `controllers` as `/proc/PID/cgroup` has them: empty for version 2.
    pub(super) fn has(&self, controllers: &str) -> bool {
        match &self.controllers {
            None => controllers.is_empty(),
            Some(ours) => !controllers.is_empty() && controllers.split(',').all(|c| ours.iter().any(|own| own == c)),
        }
    }
}
