//! Where a volume of a driver is for one pod. Every function blocks.

use std::path::{Path, PathBuf};

use actor::chain;
use ports::host::FileKind;
use volume_plan::claim::Mode;
use volume_plan::source::Resolved;

use super::files::{VolumeDir, device_target};
use crate::deps::Deps;
use crate::device_map::{DeviceMap, remove_target};
use crate::layout::{CSI, PRIVATE, PodLayout};

/// Where a volume of a driver is: for one pod, or with a file system for all pods.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// With a file system: a directory with a file that says what may have to be undone.
    Files(VolumeDir),
    /// A raw one: a path of the driver's, and a link that says the same.
    Device(PathBuf, DeviceMap),
}

impl Place {
    pub(crate) fn of(layout: &PodLayout, volume: &Resolved) -> Result<Self, String> {
        match volume.mode {
            Mode::Filesystem => VolumeDir::publish(layout, &volume.name).map(Self::Files),
            Mode::Block => Self::device(layout, &volume.name),
        }
    }

    pub(crate) fn device(layout: &PodLayout, name: &str) -> Result<Self, String> {
        let map = DeviceMap::new(layout, CSI, name).map_err(|e| e.message)?;
        Ok(Self::Device(device_target(layout, name)?, map))
    }

    /// What the driver is given.
    pub(crate) fn target(&self) -> &Path {
        match self {
            Self::Files(dir) => &dir.target,
            Self::Device(target, _) => target,
        }
    }

    /// What containers are given.
    pub(crate) fn host_path(&self) -> &Path {
        match self {
            Self::Files(dir) => &dir.target,
            Self::Device(_, map) => &map.link,
        }
    }

    /// What a raw one is bound on.
    pub(crate) fn bound(&self) -> Option<&Path> {
        match self {
            Self::Files(_) => None,
            Self::Device(_, map) => Some(map.bound()),
        }
    }

    /// Says on the disk that the pod may have the volume from now on. `content`: of the file. Answers whether it was said before.
    pub(crate) fn intend(&self, deps: &Deps, content: &[u8]) -> Result<bool, String> {
        match self {
            Self::Files(dir) => dir.intend(&*deps.fs, content),
            Self::Device(target, map) => {
                let parent = target.parent().unwrap_or(target);
                let made = deps.fs.create_dir(parent, PRIVATE);
                made.and_then(|()| map.intend(&*deps.fs, target)).map_err(|e| chain(&e))
            }
        }
    }

    /// Brings what says so to the disk.
    pub(crate) fn sync(&self, deps: &Deps) -> Result<(), String> {
        match self {
            Self::Files(dir) => dir.sync(&*deps.fs),
            // Its links were brought there when they were made.
            Self::Device(..) => Ok(()),
        }
    }

    /// Whether the pod has a link to it.
    pub(crate) fn is_linked(&self, deps: &Deps) -> Result<bool, String> {
        match self {
            Self::Files(_) => Ok(false),
            Self::Device(_, map) => map.is_there(&*deps.fs).map_err(|e| chain(&e)),
        }
    }

    /// Makes what the driver published usable for containers.
    pub(crate) fn map(&self, deps: &Deps) -> Result<(), String> {
        match self {
            Self::Files(_) => Ok(()),
            Self::Device(target, map) => map.map(deps, target).map_err(|e| chain(&e)),
        }
    }

    /// Undoes [`Place::map`].
    pub(crate) fn unmap(&self, deps: &Deps) -> Result<(), String> {
        match self {
            Self::Files(_) => Ok(()),
            Self::Device(_, map) => map.unmap(deps).map_err(|e| chain(&e)),
        }
    }

    /// Takes away what the driver should have taken away itself, after it said that it had: a device that it made there, or a link
    /// to one, is no user's file.
    pub(crate) fn clear(&self, deps: &Deps) -> Result<(), String> {
        let Self::Device(target, _) = self else { return Ok(()) };
        let made = |kind| matches!(kind, FileKind::BlockDevice | FileKind::Symlink);
        let cleared = deps.mounts.is_mount_point(target).and_then(|is_mounted| match deps.fs.stat_link(target)? {
            Some(found) if !is_mounted && made(found.kind) => deps.fs.remove_file(target),
            _ => Ok(()),
        });
        cleared.map_err(|e| chain(&e))
    }

    /// Takes away what was made for the driver. Fails while something of the volume is there.
    pub(crate) fn remove(&self, deps: &Deps) -> Result<(), String> {
        let (target, map) = match self {
            Self::Files(dir) => return dir.remove(deps),
            Self::Device(target, map) => (target, map),
        };
        self.unmap(deps)?;
        if deps.mounts.is_mount_point(target).map_err(|e| chain(&e))? {
            return Err(format!("{} is still mounted", target.display()));
        }
        remove_target(&*deps.fs, target).and_then(|()| map.forget(&*deps.fs)).map_err(|e| chain(&e))
    }
}
