//! Mounts.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use ports::host::{HostError, HostResult, MemoryMount, MountEntry, Mounter};
use rustix::fs::{AtFlags, CWD, FileType, OFlags, StatxAttributes, StatxFlags, fstat, statx};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

use crate::At;
use crate::files::{make_dirs, open_beneath};

#[cfg(test)]
mod tests;

const PROC: &str = "/proc";
/// More mounts on one directory than anybody makes by design.
const MAX_STACKED: usize = 32;

/// The mounts that this process sees.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinuxMounts;

impl Mounter for LinuxMounts {
    fn mount_memory(&self, target: &Path, what: &MemoryMount) -> HostResult<()> {
        match what {
            MemoryMount::Tmpfs { size_bytes } => {
                let size = size_bytes.map(|b| format!("size={b}"));
                let options = |noswap: bool| {
                    let words = size.iter().map(String::as_str).chain(noswap.then_some("noswap"));
                    words.collect::<Vec<_>>().join(",")
                };
                // Kernels before 6.3 do not know the option and refuse the mount.
                match mount_fs("tmpfs", target, &options(true)) {
                    Err(Errno::INVAL) => mount_fs("tmpfs", target, &options(false)),
                    other => other,
                }
            }
            MemoryMount::Hugetlbfs { page_size_bytes } => {
                mount_fs("hugetlbfs", target, &format!("pagesize={page_size_bytes}"))
            }
        }
        .at("mount", target)
    }

    fn bind_within(&self, base: &Path, relative: &Path, target: &Path) -> HostResult<()> {
        let source = open_beneath(base, relative, OFlags::PATH)?;
        let wanted = fstat(&source).at("stat", base.join(relative))?;
        make_target(target, FileType::from_raw_mode(wanted.st_mode) == FileType::Directory)?;
        if self.is_mount_point(target)? {
            let there = rustix::fs::stat(target).at("stat", target)?;
            if (there.st_dev, there.st_ino) == (wanted.st_dev, wanted.st_ino) {
                return Ok(());
            }
            self.unmount(target)?;
        }
        // The descriptor, not the path: what was checked is what gets mounted.
        mount_bind(format!("/proc/self/fd/{}", source.as_raw_fd()), target).at("bind mount", target)
    }

    fn unmount(&self, target: &Path) -> HostResult<()> {
        for _ in 0..MAX_STACKED {
            match unmount(target, UnmountFlags::NOFOLLOW) {
                Ok(()) => {}
                Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
                Err(e) => return Err(HostError::new("unmount", target, e)),
            }
        }
        Err(HostError::new("unmount", target, io::ErrorKind::ResourceBusy))
    }

    fn is_mount_point(&self, path: &Path) -> HostResult<bool> {
        match statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, StatxFlags::TYPE) {
            Ok(s) if s.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT) => {
                Ok(s.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            // A dead network mount answers with errors of its own; the table still lists it. So does an old kernel.
            _ => Ok(mount_table(Path::new(PROC))?.iter().any(|m| m.mount_point == path)),
        }
    }

    fn mounts(&self) -> HostResult<Vec<MountEntry>> {
        Ok(mount_table(Path::new(PROC))?
            .into_iter()
            .map(|m| MountEntry {
                mount_point: m.mount_point,
                fs_type: m.fs_type,
                source: m.mount_source.unwrap_or_default(),
                root: m.root.into(),
            })
            .collect())
    }
}

fn mount_fs(kind: &str, target: &Path, options: &str) -> Result<(), Errno> {
    let options = std::ffi::CString::new(options).map_err(|_| Errno::INVAL)?;
    mount(kind, target, kind, MountFlags::empty(), options.as_c_str())
}

fn make_target(target: &Path, dir: bool) -> HostResult<()> {
    if dir {
        return make_dirs(target, 0o750);
    }
    if let Some(parent) = target.parent() {
        make_dirs(parent, 0o750)?;
    }
    match fs::OpenOptions::new().write(true).create_new(true).open(target) {
        Ok(file) => rustix::fs::fchmod(&file, 0o640.into()).at("chmod", target),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(HostError::new("create", target, e)),
    }
}

/// The mount table of this process, by its `/proc`.
pub(crate) fn mount_table(proc: &Path) -> HostResult<Vec<procfs::process::MountInfo>> {
    let mut table: procfs::process::MountInfos = crate::parsed(&proc.join("self/mountinfo"))?;
    for mount in &mut table.0 {
        if let Some(point) = mount.mount_point.to_str().filter(|p| p.contains('\\')) {
            mount.mount_point = unescaped(point).into();
        }
        mount.root = unescaped(&mount.root);
        mount.mount_source = mount.mount_source.take().map(|s| unescaped(&s));
    }
    Ok(table.0)
}

/// Blanks and backslashes stand in the table as octal numbers, and `procfs` leaves them so.
fn unescaped(text: &str) -> String {
    // The backslash last: what it makes is no escape of its own.
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}
