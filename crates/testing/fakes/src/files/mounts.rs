//! Mounts: a directory with something mounted on it is on another device.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ports::host::{
    FileKind, HUGETLBFS_MAGIC, HostError, HostResult, MemoryMount, MountLine, Mounter, ProgramEnd, TMPFS_MAGIC,
};

use super::tree::{EXT4_MAGIC, Errno, Found, Kind, Res};
use super::{MemFs, State, make_dirs};

/// What `statfs` says of NFS.
const NFS_MAGIC: i64 = 0x6969;

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

    /// Mounts on a directory what is mounted on another one.
    ///
    /// # Panics
    /// There is no such directory, or nothing is mounted on the other one.
    pub fn mount_again(&self, of: &Path, dir: &Path) {
        let mut state = self.state();
        let (number, magic) = state.tree.mounted_on(of).map(|(number, m)| (number, m.magic)).expect("it is mounted");
        let source = state.sources.get(of).cloned().unwrap_or_else(|| format!("0:{number}"));
        state.tree.mount(dir, magic, None).expect("a mount point is there");
        state.sources.insert(dir.to_owned(), source);
    }

    /// Source and options of the share that is mounted here.
    #[must_use]
    pub fn share_on(&self, dir: &Path) -> Option<(String, Vec<String>)> {
        self.state().shares.get(dir).cloned()
    }

    /// Most bytes of the tmpfs that is mounted here; `None`: none is mounted, `Some(None)`: it has no limit.
    #[must_use]
    pub fn tmpfs_size(&self, dir: &Path) -> Option<Option<u64>> {
        let state = self.state();
        state.tree.mounted_on(dir).filter(|(_, m)| m.magic == TMPFS_MAGIC).map(|(_, m)| m.size_bytes)
    }

    /// From now on this plays the programs of the host. It is told each call as one line, and `write PATH TEXT` when a file of the
    /// kernel's is written to; `None`: the host has no such program.
    pub fn play_programs<E: Into<Option<ProgramEnd>>>(
        &self,
        double: impl Fn(&Self, &str) -> E + Send + Sync + 'static,
    ) {
        self.state().programs.double = Some(Arc::new(move |fs, line| double(fs, line).into()));
    }

    /// Calls of programs, and writes to files of the kernel's, since the last look.
    #[must_use]
    pub fn program_calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state().programs.calls)
    }

    /// Somebody who is not this node has a device for himself.
    pub fn hold_alone(&self, device: &Path) {
        self.state().alone.insert(device.to_owned());
    }

    /// Undoes [`MemFs::hold_alone`].
    pub fn let_go(&self, device: &Path) {
        self.state().alone.remove(device);
    }

    fn program(&self, line: String) -> Option<ProgramEnd> {
        let double = {
            let mut state = self.state();
            state.programs.calls.push(line.clone());
            state.programs.double.clone()
        };
        // Without the lock: it may change what there is.
        double.and_then(|double| double(self, &line))
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
            s.tree.mount(target, EXT4_MAGIC, None)?;
            let of = s.sources.iter().find(|(at, _)| base.starts_with(at));
            if let Some((at, source)) = of.map(|(at, source)| (at.clone(), source.clone())) {
                let above = s.parts.get(&at).cloned().unwrap_or_default();
                let within = above.join(base.strip_prefix(&at).unwrap_or(base)).join(relative);
                s.sources.insert(target.to_owned(), source);
                s.parts.insert(target.to_owned(), within.components().filter(|c| *c != Component::CurDir).collect());
            }
            Ok(())
        })
    }

    fn unmount(&self, target: &Path) -> HostResult<()> {
        self.call("unmount", target, true, |s| {
            if s.held.contains(target) {
                return Err(Errno::Busy);
            }
            s.sources.remove(target);
            s.parts.remove(target);
            s.tree.unmount(target)
        })
    }

    fn run_program(&self, program: &'static str, arguments: &[String], _: Duration) -> HostResult<ProgramEnd> {
        let end = self.program(format!("{program} {}", arguments.join(" ")));
        end.ok_or_else(|| HostError::new("run", program, Errno::NoEnt))
    }

    fn write_attribute(&self, path: &Path, text: &str) -> HostResult<()> {
        self.call("write", path, true, |s| s.tree.get(path, true).map(drop))?;
        self.program(format!("write {} {text}", path.display()));
        Ok(())
    }

    fn is_held(&self, device: &Path) -> HostResult<bool> {
        self.call("open", device, false, |s| {
            let Ok(ino) = s.tree.get(device, true) else { return Ok(false) };
            let is_it = |path: &Path| s.tree.get(path, true).is_ok_and(|other| other == ino);
            Ok(s.alone.iter().any(|path| is_it(path)) || s.sources.values().any(|source| is_it(Path::new(source))))
        })
    }

    fn mount_table(&self, _root: &Path) -> HostResult<Vec<MountLine>> {
        let state = self.state();
        let line = |(number, mounted): (&u64, &super::tree::Mounted)| {
            let source = state.sources.get(&mounted.at).cloned();
            let device = source.clone().unwrap_or_else(|| format!("0:{number}"));
            let fs_type = source.as_ref().and_then(|s| state.formats.get(Path::new(s))).cloned().unwrap_or_default();
            let options = source.as_ref().and_then(|s| state.options.get(s)).cloned().unwrap_or_default();
            let source = source.unwrap_or_else(|| "none".to_owned());
            let part = Path::new("/").join(state.parts.get(&mounted.at).cloned().unwrap_or_default());
            MountLine { at: mounted.at.clone(), part, source, device, fs_type, options }
        };
        Ok(state.tree.mounted.iter().map(line).collect())
    }

    fn mount_share(&self, (_, source): (&str, &str), options: &[String], target: &Path) -> HostResult<()> {
        self.call("mount", target, true, |s| {
            if s.tree.mounted_on(target).is_none() {
                make_dirs(&mut s.tree, target, 0o750)?;
                s.tree.mount(target, NFS_MAGIC, None)?;
                s.shares.insert(target.to_owned(), (source.to_owned(), options.to_vec()));
            }
            Ok(())
        })
    }

    fn unmount_share(&self, _: &str, target: &Path) -> HostResult<()> {
        self.call("umount", target, true, |s| match s.tree.mounted_on(target).map(|(_, m)| m.magic) {
            None => Ok(()),
            Some(NFS_MAGIC) => {
                s.shares.remove(target);
                s.tree.unmount(target)
            }
            Some(_) => Err(Errno::Exist),
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
            s.tree.mount(target, EXT4_MAGIC, None)?;
            s.sources.insert(target.to_owned(), device.display().to_string());
            s.options.insert(device.display().to_string(), options.join(","));
            Ok(())
        })
    }
}
