//! Mounts: a directory with something mounted on it is on another device.

use std::path::{Path, PathBuf};

use ports::host::{FileKind, HUGETLBFS_MAGIC, HostResult, MemoryMount, Mounter, TMPFS_MAGIC};

use super::tree::{EXT4_MAGIC, Errno, Found, Kind, Res};
use super::{MemFs, State, make_dirs};

impl MemFs {
    /// Mounts a disk on a directory.
    ///
    /// # Panics
    /// There is no such directory.
    pub fn mount(&self, dir: &Path) {
        self.mount_as(dir, EXT4_MAGIC);
    }

    /// As [`MemFs::mount`], of what `statfs` says this of.
    ///
    /// # Panics
    /// As [`MemFs::mount`].
    pub fn mount_as(&self, dir: &Path, magic: i64) {
        self.state().tree.mount(dir, magic, None).expect("a mount point is there");
    }

    /// Most bytes of the tmpfs that is mounted here; `None`: none is mounted, `Some(None)`: it has no limit.
    #[must_use]
    pub fn tmpfs_size(&self, dir: &Path) -> Option<Option<u64>> {
        let state = self.state();
        state.tree.mounted_on(dir).filter(|(_, m)| m.magic == TMPFS_MAGIC).map(|(_, m)| m.size_bytes)
    }

    /// Paths at which loop devices hold a device open.
    #[must_use]
    pub fn held_devices(&self) -> Vec<PathBuf> {
        self.state().held.iter().cloned().collect()
    }

    /// What a device was formatted as; `None`: it was not.
    #[must_use]
    pub fn format_of(&self, device: &Path) -> Option<String> {
        self.state().formats.get(device).cloned()
    }
}

/// The block device that a path leads to.
fn device(state: &State, path: &Path) -> Res<u64> {
    let ino = state.tree.get(path, true)?;
    match state.tree.node(ino).kind {
        Kind::Special(FileKind::BlockDevice) => Ok(ino),
        _ => Err(Errno::Inval),
    }
}

impl Mounter for MemFs {
    fn mount_memory(&self, target: &Path, what: &MemoryMount) -> HostResult<()> {
        let (magic, size_bytes) = match what {
            MemoryMount::Tmpfs { size_bytes } => (TMPFS_MAGIC, *size_bytes),
            MemoryMount::Hugetlbfs { .. } => (HUGETLBFS_MAGIC, None),
        };
        self.call("mount", target, true, |s| s.tree.mount(target, magic, size_bytes))
    }

    fn bind_within(&self, base: &Path, relative: &Path, target: &Path) -> HostResult<()> {
        self.call("bind mount", target, true, |s| {
            let root = s.tree.get(base, true)?;
            let source = s.tree.walk(vec![root], relative, true, true)?.node.ok_or(Errno::NoEnt)?;
            if s.tree.mounted_on(target).is_some() {
                return Ok(());
            }
            if s.tree.dir(source).is_ok() {
                make_dirs(&mut s.tree, target, 0o750)?;
            } else {
                let Found { parent, name, node } = s.tree.find(target, false)?;
                if node.is_none() {
                    s.tree.add(parent, name, Kind::File(Vec::new()), 0o640)?;
                }
            }
            s.tree.mount(target, EXT4_MAGIC, None)
        })
    }

    fn unmount(&self, target: &Path) -> HostResult<()> {
        self.call("unmount", target, true, |s| {
            if s.held.contains(target) { Err(Errno::Busy) } else { s.tree.unmount(target) }
        })
    }

    fn is_mount_point(&self, path: &Path) -> HostResult<bool> {
        self.call("is mounted", path, false, |s| Ok(s.tree.mounted_on(path).is_some()))
    }

    fn mounts_below(&self, dir: &Path) -> HostResult<Vec<PathBuf>> {
        let is_below = |at: &&PathBuf| at.starts_with(dir) && *at != dir;
        Ok(self.state().tree.mounted.values().map(|m| &m.at).filter(is_below).cloned().collect())
    }

    fn bind_device(&self, device: &Path, target: &Path) -> HostResult<()> {
        self.call("bind mount", target, true, |s| {
            let source = self::device(s, device)?;
            make_dirs(&mut s.tree, target.parent().ok_or(Errno::NoEnt)?, 0o750)?;
            let Found { parent, name, node } = s.tree.find(target, false)?;
            if node.is_none() {
                s.tree.add(parent, name, Kind::File(Vec::new()), 0o640)?;
            }
            if s.bound.insert(target.to_owned(), source) == Some(source) && s.tree.mounted_on(target).is_some() {
                return Ok(());
            }
            s.held.remove(target);
            s.tree.unmount(target)?;
            s.tree.mount(target, EXT4_MAGIC, None)
        })
    }

    fn hold_device(&self, target: &Path) -> HostResult<()> {
        self.call("losetup", target, true, |s| {
            s.tree.mounted_on(target).ok_or(Errno::Inval)?;
            s.held.insert(target.to_owned());
            Ok(())
        })
    }

    fn release_device(&self, target: &Path) -> HostResult<()> {
        self.call("losetup", target, true, |s| {
            s.held.remove(target);
            Ok(())
        })
    }

    fn mount_device(&self, device: &Path, target: &Path, fs_type: &str, options: &[String]) -> HostResult<()> {
        self.call("mount", target, true, |s| {
            self::device(s, device)?;
            make_dirs(&mut s.tree, target, 0o750)?;
            if s.tree.mounted_on(target).is_some() {
                return Ok(());
            }
            if !s.formats.contains_key(device) && options.iter().any(|o| o == "ro") {
                return Err(Errno::Inval);
            }
            s.formats.entry(device.to_owned()).or_insert_with(|| fs_type.to_owned());
            s.tree.mount(target, EXT4_MAGIC, None)
        })
    }
}
