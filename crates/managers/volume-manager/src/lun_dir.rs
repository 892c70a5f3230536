//! Directories of disks that the host reaches over a network: where each is mounted, or bound, for all pods. Every function blocks.
//!
//! The directory is there before the host is asked for the disk and goes last, so it says what may have to be undone; a file
//! in it says which disk: that of an iSCSI disk always, that of another one while it is raw or being taken away. A kubelet has the same directories.

use std::path::{Path, PathBuf};

use actor::chain;
use ports::host::{HostFs, HostResult};
use volume_plan::claim::Mode;
use volume_plan::lun::{Lun, Transport};

use crate::deps::Deps;
use crate::layout::{PRIVATE, PodLayout, plain};
use crate::listing::{dirs, names};

const MAX_BYTES: u64 = 1 << 20;
/// Directory of raw volumes among those of a kind.
const DEVICES: &str = "volumeDevices";

/// The directory of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LunDir {
    pub transport: Transport,
    pub mode: Mode,
    /// Directories below that of the kind.
    parts: Vec<String>,
    pub path: PathBuf,
}

/// A disk that the host has for pods, or may have.
#[derive(Clone, Debug)]
pub(crate) struct FoundLun {
    pub dir: LunDir,
    /// Some pod has it.
    pub is_used: bool,
}

/// The kind whose directories in pods have this name.
pub(crate) fn transport(plugin: &str) -> Option<Transport> {
    Transport::ALL.into_iter().find(|t| t.plugin() == plugin)
}

fn base(root: &Path, transport: Transport, mode: Mode) -> PathBuf {
    let own = root.join("plugins/kubernetes.io").join(transport.kind());
    match mode {
        Mode::Filesystem => own,
        Mode::Block => own.join(DEVICES),
    }
}

impl LunDir {
    /// # Errors
    /// A name cannot be one of a directory.
    pub(crate) fn new(root: &Path, lun: &Lun, mode: Mode) -> Result<Self, String> {
        Self::of(root, lun.transport(), mode, lun.dirs())
    }

    fn of(root: &Path, transport: Transport, mode: Mode, parts: Vec<String>) -> Result<Self, String> {
        let mut path = base(root, transport, mode);
        for part in &parts {
            path.push(plain(part).map_err(|e| e.message)?);
        }
        Ok(Self { transport, mode, parts, path })
    }

    /// Its own name, without the directories above.
    pub(crate) fn name(&self) -> &str {
        self.parts.last().map_or("", String::as_str)
    }

    /// The name above its own.
    pub(crate) fn iface(&self) -> &str {
        self.parts.first().map_or("", String::as_str)
    }

    /// Name of the disk in this process.
    pub(crate) fn key(&self) -> String {
        self.transport.key(self.name())
    }

    /// Makes the directory and the file in it, which stay from now on whatever happens. Answers whether the directory was there, and
    /// whether the disk is mounted on it already.
    pub(crate) fn intend(&self, deps: &Deps, file: Option<&[u8]>) -> Result<(bool, bool), String> {
        let done: HostResult<(bool, bool)> = (|| {
            let fs = &*deps.fs;
            let was_there = fs.stat_link(&self.path)?.is_some();
            fs.create_dir(&self.path, PRIVATE)?;
            if self.mode == Mode::Filesystem && deps.mounts.is_mount_point(&self.path)? {
                return Ok((was_there, true));
            }
            if let Some(content) = file {
                self.write(fs, content)?;
            }
            fs.sync_dir(&self.path)?;
            Ok((was_there, false))
        })();
        done.map_err(|e| chain(&e))
    }

    /// Writes the file, unless it says so already.
    pub(crate) fn write(&self, fs: &dyn HostFs, content: &[u8]) -> HostResult<()> {
        if self.file(fs)?.as_deref() == Some(content) {
            return Ok(());
        }
        fs.write_file_synced(&self.path.join(self.transport.file()), content, 0o644)
    }

    /// The file; `None`: there is none, or something is mounted over it.
    pub(crate) fn file(&self, fs: &dyn HostFs) -> HostResult<Option<Vec<u8>>> {
        match fs.read_file(&self.path.join(self.transport.file()), MAX_BYTES) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Whether this is the name of the file, or of what was written in place of it by a daemon that died over it, see
    /// [`HostFs::write_file`].
    fn is_file(&self, name: &str) -> bool {
        let file = self.transport.file();
        let rest = name.strip_prefix('.').and_then(|n| n.strip_prefix(file));
        name == file || rest.is_some_and(|rest| rest.ends_with(".tmp"))
    }

    /// Takes the directory away, after all else was undone. Nothing that is mounted or holds anything goes.
    pub(crate) fn remove(&self, deps: &Deps) -> Result<(), String> {
        let done: HostResult<bool> = (|| {
            let fs = &*deps.fs;
            if deps.mounts.is_mount_point(&self.path)? {
                return Ok(false);
            }
            for name in names(fs, &self.path)?.iter().filter(|name| self.is_file(name)) {
                fs.remove_file(&self.path.join(name))?;
            }
            fs.remove_empty_dir(&self.path)?;
            if let (2, Some(above)) = (self.parts.len(), self.path.parent())
                && names(fs, above)?.is_empty()
            {
                fs.remove_empty_dir(above)?;
            }
            Ok(true)
        })();
        match done {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("{} is still mounted", self.path.display())),
            Err(e) => Err(chain(&e)),
        }
    }
}

/// Directories of disks of a kind.
fn all(fs: &dyn HostFs, root: &Path, transport: Transport, mode: Mode) -> HostResult<Vec<LunDir>> {
    let base = base(root, transport, mode);
    let mut found = Vec::new();
    for first in dirs(fs, &base)?.into_iter().filter(|name| name != DEVICES) {
        let names = if transport.has_interfaces() { dirs(fs, &base.join(&first))? } else { Vec::new() };
        let parts: Vec<Vec<String>> = if transport.has_interfaces() {
            names.into_iter().map(|name| vec![first.clone(), name]).collect()
        } else {
            vec![vec![first]]
        };
        // Names that were read from the disk are plain ones.
        found.extend(parts.into_iter().filter_map(|parts| LunDir::of(root, transport, mode, parts).ok()));
    }
    Ok(found)
}

/// Removes directories of interfaces without a disk: a daemon was killed before it made the one of a disk, or after that was gone.
pub(crate) fn remove_cut_off(deps: &Deps, root: &Path) -> HostResult<()> {
    let fs = &*deps.fs;
    for transport in Transport::ALL.into_iter().filter(|t| t.has_interfaces()) {
        for mode in [Mode::Filesystem, Mode::Block] {
            let base = base(root, transport, mode);
            for interface in dirs(fs, &base)?.into_iter().filter(|name| name != DEVICES) {
                if names(fs, &base.join(&interface))?.is_empty() {
                    fs.remove_empty_dir(&base.join(&interface))?;
                }
            }
        }
    }
    Ok(())
}

/// Disks that the host has for pods, or may have. What cannot be listed makes the whole answer fail: on less than all, nothing may
/// be taken away.
pub(crate) fn found(deps: &Deps, root: &Path) -> HostResult<Vec<FoundLun>> {
    let mut dirs = Vec::new();
    for transport in Transport::ALL {
        for mode in [Mode::Filesystem, Mode::Block] {
            dirs.extend(all(&*deps.fs, root, transport, mode)?);
        }
    }
    if dirs.is_empty() {
        return Ok(Vec::new());
    }
    let table = deps.mounts.mount_table(root)?;
    let is_used = |dir: &LunDir| {
        if dir.mode == Mode::Block {
            return Ok(names(&*deps.fs, &dir.path)?.iter().any(|name| !dir.is_file(name)));
        }
        // A pod has a bind of it, or a container one of a part of it.
        let own = table.iter().rfind(|line| line.at == dir.path);
        Ok(own.is_some_and(|own| table.iter().any(|line| line.device == own.device && line.at != own.at)))
    };
    dirs.into_iter().map(|dir| Ok(FoundLun { is_used: is_used(&dir)?, dir })).collect()
}

/// Directories of disks of a kind where one is bound for this pod.
pub(crate) fn bound_for(fs: &dyn HostFs, layout: &PodLayout, transport: Transport) -> Result<Vec<PathBuf>, String> {
    let of_pod = || -> HostResult<Vec<PathBuf>> {
        let mut out = Vec::new();
        for dir in all(fs, layout.root(), transport, Mode::Block)? {
            if fs.stat_link(&dir.path.join(layout.uid()))?.is_some() {
                out.push(dir.path);
            }
        }
        Ok(out)
    };
    of_pod().map_err(|e| chain(&e))
}
