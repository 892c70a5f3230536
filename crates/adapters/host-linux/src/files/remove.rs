//! Removing a tree without ever leaving its file system.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use ports::host::{HostError, HostResult};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, StatxAttributes, StatxFlags, statx, unlinkat};
use rustix::io::Errno;

/// A directory that is being emptied.
struct Frame {
    fd: OwnedFd,
    name: CString,
    dirs: Vec<CString>,
}

/// Everything below `path`, then `path`. What cannot go stays, the rest goes; the first failure is the answer.
pub(super) fn remove_tree(path: &Path) -> HostResult<()> {
    let fail = |op, e: Errno| HostError::new(op, path, e);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return unlinkat(CWD, path, AtFlags::empty()).map_err(|e| fail("unlink", e));
        }
        Err(e) => return Err(fail("open", e)),
    };
    let (device, is_mount) = place(&fd, c"").map_err(|e| fail("stat", e))?;
    if is_mount {
        return Err(fail("remove mounted", Errno::BUSY));
    }
    let mut first_error = None;
    let mut stack = vec![Frame { dirs: empty_of_files(&fd, &mut first_error), fd, name: CString::default() }];
    while let Some(top) = stack.last_mut() {
        if let Some(name) = top.dirs.pop() {
            match enter(&top.fd, &name, device) {
                Ok(fd) => {
                    let dirs = empty_of_files(&fd, &mut first_error);
                    stack.push(Frame { fd, name, dirs });
                }
                Err(Errno::NOENT) => {}
                Err(e) => note(&mut first_error, e),
            }
            continue;
        }
        let done = stack.pop();
        if let (Some(done), Some(parent)) = (done, stack.last())
            && let Err(e) = unlinkat(&parent.fd, &done.name, AtFlags::REMOVEDIR)
            && e != Errno::NOENT
        {
            note(&mut first_error, e);
        }
    }
    match rustix::fs::rmdir(path) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(fail("remove", first_error.unwrap_or(e))),
    }
}

fn note(first: &mut Option<Errno>, e: Errno) {
    first.get_or_insert(e);
}

/// Opens a directory below unless something is mounted on it: a bind mount shows the same device, so both are asked.
fn enter(parent: &OwnedFd, name: &CStr, device: (u32, u32)) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let (here, is_mount) = place(&fd, c"")?;
    if is_mount || here != device { Err(Errno::BUSY) } else { Ok(fd) }
}

fn place(fd: impl AsFd, name: &CStr) -> Result<((u32, u32), bool), Errno> {
    let s = statx(fd, name, AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT, StatxFlags::TYPE)?;
    Ok(((s.stx_dev_major, s.stx_dev_minor), s.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)))
}

/// Unlinks all that is no directory and answers with the directories.
fn empty_of_files(fd: &OwnedFd, first_error: &mut Option<Errno>) -> Vec<CString> {
    let mut dirs = Vec::new();
    let entries = match Dir::read_from(fd) {
        Ok(d) => d,
        Err(e) => {
            note(first_error, e);
            return dirs;
        }
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = match entry {
            Ok(e) => e,
            Err(e) => {
                note(first_error, e);
                break;
            }
        };
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if is_dir(fd, name, entry.file_type()) { dirs.push(name.to_owned()) } else { files.push(name.to_owned()) }
    }
    for name in files {
        match unlinkat(fd, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => note(first_error, e),
        }
    }
    dirs
}

fn is_dir(fd: &OwnedFd, name: &CStr, told: FileType) -> bool {
    match told {
        FileType::Directory => true,
        FileType::Unknown => rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory),
        _ => false,
    }
}
