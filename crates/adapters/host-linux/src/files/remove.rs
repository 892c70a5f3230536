//! Removing a tree without ever leaving its file system.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::path::Path;

use ports::host::{HostError, HostResult};
use rustix::fs::{AtFlags, CWD, Dir, Mode, unlinkat};
use rustix::io::Errno;

use super::descend::{Identity, OPEN_DIR, climb, is_dir, place_and_mount};

/// About the most names of directories that are held at once, however wide and deep the tree is.
const HELD: usize = 1024;
/// Directories that are begun before somebody is taken to make them as fast as they go.
const MOST: u64 = 100_000_000;

/// A directory that is being emptied. Only the lowest of them is open: the way up is `..`, which is believed only when it leads to
/// where we came from.
struct Level {
    name: CString,
    identity: Identity,
    /// Directories in it that come next.
    dirs: Vec<CString>,
    /// Those that could not be removed.
    stuck: BTreeSet<CString>,
    /// There are more of them than are held in `dirs`.
    more: bool,
}

impl Level {
    fn new(name: CString, identity: Identity) -> Self {
        Self { name, identity, dirs: Vec::new(), stuck: BTreeSet::new(), more: true }
    }
}

/// Everything below `path`, then `path`. What cannot go stays, the rest goes; the first failure is the answer.
pub(super) fn remove_tree(path: &Path) -> HostResult<()> {
    let fail = |op, e: Errno| HostError::new(op, path, e);
    let top = match rustix::fs::open(path, OPEN_DIR, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return unlinkat(CWD, path, AtFlags::empty()).map_err(|e| fail("unlink", e));
        }
        Err(e) => return Err(fail("open", e)),
    };
    let (identity, is_mounted) = place_and_mount(&top).map_err(|e| fail("stat", e))?;
    if is_mounted {
        return Err(fail("remove mounted", Errno::BUSY));
    }
    let mut first_error = None;
    if let Err(e) = empty(top, identity, &mut first_error) {
        first_error.get_or_insert(e);
    }
    match rustix::fs::rmdir(path) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(fail("remove", first_error.unwrap_or(e))),
    }
}

/// Removes what is below `top`, with a handful of descriptors. Ends early only when the tree is changed by somebody else meanwhile.
fn empty(top: OwnedFd, identity: Identity, first_error: &mut Option<Errno>) -> Result<(), Errno> {
    let mut here = top;
    let mut levels = vec![Level::new(CString::default(), identity)];
    let mut begun = 0_u64;
    loop {
        let depth = levels.len();
        let Some(lowest) = levels.last_mut() else { return Ok(()) };
        if lowest.dirs.is_empty() && lowest.more {
            unlink_files(&here, lowest, (HELD / depth).max(1), first_error);
        }
        if let Some(name) = lowest.dirs.pop() {
            begun += 1;
            if begun > MOST {
                return Err(Errno::BUSY);
            }
            match enter(&here, &name, identity.device) {
                Ok((fd, found)) => {
                    here = fd;
                    levels.push(Level::new(name, found));
                }
                Err(Errno::NOENT) => {}
                Err(e) => {
                    first_error.get_or_insert(e);
                    lowest.stuck.insert(name);
                }
            }
            continue;
        }
        let done = levels.pop();
        if let (Some(done), Some(above)) = (done, levels.last_mut()) {
            here = climb(&here, above.identity)?;
            match unlinkat(&here, &done.name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(e) => {
                    first_error.get_or_insert(e);
                    above.stuck.insert(done.name);
                }
            }
        }
    }
}

/// Opens a directory below unless something is mounted on it: a bind mount shows the same device, so both are asked.
fn enter(parent: &OwnedFd, name: &CStr, device: (u32, u32)) -> Result<(OwnedFd, Identity), Errno> {
    let fd = rustix::fs::openat(parent, name, OPEN_DIR, Mode::empty())?;
    let (found, is_mounted) = place_and_mount(&fd)?;
    if is_mounted || found.device != device { Err(Errno::BUSY) } else { Ok((fd, found)) }
}

/// Unlinks what is no directory and notes directories, until `most` of them are noted or there is nothing more.
fn unlink_files(fd: &OwnedFd, level: &mut Level, most: usize, first_error: &mut Option<Errno>) {
    level.more = false;
    let entries = match Dir::read_from(fd) {
        Ok(entries) => entries,
        Err(e) => {
            first_error.get_or_insert(e);
            return;
        }
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(e) => {
                first_error.get_or_insert(e);
                return;
            }
        };
        let name = entry.file_name();
        if name == c"." || name == c".." || level.stuck.contains(name) {
            continue;
        }
        if is_dir(fd, name, entry.file_type()) {
            if level.dirs.len() >= most {
                level.more = true;
                return;
            }
            level.dirs.push(name.to_owned());
            continue;
        }
        match unlinkat(fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => {
                first_error.get_or_insert(e);
            }
        }
    }
}
