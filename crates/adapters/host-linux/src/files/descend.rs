//! Ways down and up a tree that others change meanwhile: by descriptors, never by a path.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxAttributes, StatxFlags, openat, statx};
use rustix::io::Errno;

/// How a directory is opened that must not be a link.
pub(super) const OPEN_DIR: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory, whatever its name is now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub device: (u32, u32),
    inode: u64,
}

/// Which directory this is.
pub(super) fn place(fd: impl AsFd) -> Result<Identity, Errno> {
    facts(fd).map(|s| identity(&s))
}

/// Which directory this is, and whether something is mounted on it. A bind mount shows the same device, so the kernel is asked for that.
pub(super) fn place_and_mount(fd: &OwnedFd) -> Result<(Identity, bool), Errno> {
    let s = facts(fd)?;
    let is_mounted = if s.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT) {
        s.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
    } else {
        is_mounted_by_id(fd)?
    };
    Ok((identity(&s), is_mounted))
}

fn identity(s: &Statx) -> Identity {
    Identity { device: (s.stx_dev_major, s.stx_dev_minor), inode: s.stx_ino }
}

/// Whether something is mounted on a directory, of a kernel before 5.8: the way up from what is mounted leads out of the mount.
pub(super) fn is_mounted_by_id(fd: &OwnedFd) -> Result<bool, Errno> {
    let above = openat(fd, c"..", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(mount_id(fd)? != mount_id(&above)?)
}

fn mount_id(fd: &OwnedFd) -> Result<u64, Errno> {
    let path = format!("/proc/self/fdinfo/{}", fd.as_raw_fd());
    let text = std::fs::read_to_string(path).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
    let id = text.lines().find_map(|line| line.strip_prefix("mnt_id:")).and_then(|id| id.trim().parse().ok());
    id.ok_or(Errno::NOTSUP)
}

fn facts(fd: impl AsFd) -> Result<Statx, Errno> {
    statx(fd, c"", AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT, StatxFlags::TYPE | StatxFlags::INO)
}

/// Back to the directory that `from` was entered from; `from` may have been moved elsewhere since.
pub(super) fn climb(from: &OwnedFd, to: Identity) -> Result<OwnedFd, Errno> {
    let fd = openat(from, c"..", OPEN_DIR, Mode::empty())?;
    if place(&fd)? == to { Ok(fd) } else { Err(Errno::STALE) }
}

/// Whether an entry is a directory, by what the listing told of it, or by a look.
pub(super) fn is_dir(fd: &OwnedFd, name: &CStr, told: FileType) -> bool {
    match told {
        FileType::Directory => true,
        FileType::Unknown => rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory),
        _ => false,
    }
}
