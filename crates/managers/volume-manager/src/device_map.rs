//! A raw volume of one pod on the disk: a link in the pod's folder, which containers are given, and a file on which the device is
//! bound and held open. A kubelet makes the same. Every function blocks and may be repeated.
//!
//! The link is there before anything is done for the pod and goes last, so it says what may have to be undone.

use std::path::{Path, PathBuf};

use contract::volume::VolumeError;
use ports::host::{FileKind, HostError, HostFs, HostResult};

use crate::deps::Deps;
use crate::layout::{CSI, PRIVATE, PodLayout, plain};

/// Where raw volumes of CSI drivers are, below the root directory.
pub(crate) const CSI_DEVICES: &str = "plugins/kubernetes.io/csi/volumeDevices";

/// Paths of a raw volume of one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceMap {
    /// In the pod's folder.
    pub link: PathBuf,
    /// What the device is bound on.
    bound: PathBuf,
}

impl DeviceMap {
    /// # Errors
    /// A name cannot be one of a directory.
    pub(crate) fn new(layout: &PodLayout, plugin: &str, name: &str) -> Result<Self, VolumeError> {
        let (plugin, name) = (plain(plugin)?, plain(name)?);
        let all = if plugin == CSI {
            layout.root().join(CSI_DEVICES).join(name).join("dev")
        } else {
            layout.root().join("plugins").join(plugin).join("volumeDevices").join(name)
        };
        Ok(Self { link: layout.block_devices().join(plugin).join(name), bound: all.join(layout.uid()) })
    }

    /// What the device is bound on.
    pub(crate) fn bound(&self) -> &Path {
        &self.bound
    }

    /// The same with another directory for all pods that have the device.
    pub(crate) fn bound_in(self, layout: &PodLayout, dir: &Path) -> Self {
        Self { bound: dir.join(layout.uid()), ..self }
    }

    /// From now on the pod has the device, or may have it. Answers whether it was so before.
    pub(crate) fn intend(&self, fs: &dyn HostFs, device: &Path) -> HostResult<bool> {
        let [_, dir] = self.dirs();
        fs.create_dir(dir, PRIVATE)?;
        let there = fs.stat_link(&self.link)?;
        if there.is_some_and(|s| s.kind == FileKind::Symlink) && fs.read_link(&self.link)? == device {
            return Ok(true);
        }
        // One of an earlier boot may lead to a device that has another name now.
        fs.remove_file(&self.link)?;
        fs.symlink(device, &self.link)?;
        fs.sync_dir(dir)?;
        Ok(there.is_some())
    }

    /// Whether the pod has the device, or may have it.
    pub(crate) fn is_there(&self, fs: &dyn HostFs) -> HostResult<bool> {
        Ok(fs.stat_link(&self.link)?.is_some())
    }

    /// Binds the device and holds it open.
    pub(crate) fn map(&self, deps: &Deps, device: &Path) -> HostResult<()> {
        deps.mounts.bind_device(device, &self.bound)?;
        deps.mounts.hold_device(&self.bound)
    }

    /// The directory where the device is bound for each pod, and that of the pod's links.
    pub(crate) fn dirs(&self) -> [&Path; 2] {
        [&self.bound, &self.link].map(|path| path.parent().unwrap_or(path))
    }

    /// Undoes [`DeviceMap::map`].
    pub(crate) fn unmap(&self, deps: &Deps) -> HostResult<()> {
        deps.mounts.release_device(&self.bound)?;
        deps.mounts.unmount(&self.bound)?;
        remove_target(&*deps.fs, &self.bound)
    }

    /// The directory of all pods that have the device goes, when there is none.
    pub(crate) fn remove_shared_dir(&self, fs: &dyn HostFs) -> HostResult<()> {
        let [dir, _] = self.dirs();
        match fs.remove_empty_dir(dir) {
            Err(e) if e.kind() == std::io::ErrorKind::DirectoryNotEmpty => Ok(()),
            other => other,
        }
    }

    /// The pod has nothing of the device any more.
    pub(crate) fn forget(&self, fs: &dyn HostFs) -> HostResult<()> {
        match fs.stat_link(&self.link)? {
            None => Ok(()),
            Some(s) if s.kind == FileKind::Symlink => fs.remove_file(&self.link),
            Some(_) => Err(HostError::new("unlink", &self.link, std::io::Error::other("it is no link"))),
        }
    }
}

/// A bind target is an empty directory or an empty file; anything else was not made here.
pub(crate) fn remove_target(fs: &dyn HostFs, path: &Path) -> HostResult<()> {
    match fs.stat_link(path)? {
        None => Ok(()),
        Some(s) if s.kind == FileKind::Dir => fs.remove_empty_dir(path),
        Some(s) if s.kind == FileKind::File && s.size == 0 => fs.remove_file(path),
        Some(_) => Err(HostError::new("remove", path, std::io::ErrorKind::DirectoryNotEmpty)),
    }
}
