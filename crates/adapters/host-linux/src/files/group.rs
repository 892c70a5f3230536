//! Giving a tree to a group. A container that has the volume already may swap a directory for a link at any moment, so all is changed
//! by descriptors.

use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ports::host::{GroupGrant, HostError, HostResult, Links, Met};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, chownat, fstat, openat};
use rustix::io::Errno;

use super::descend::{Identity, OPEN_DIR, climb, is_dir, place};
use super::open::by_descriptor;

/// Refers to an entry, a link itself included, without opening it.
const REFER: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory whose directories are being given. Only the lowest is open.
struct Level {
    name: CString,
    identity: Identity,
    dirs: Vec<CString>,
}

struct Walk<'a> {
    path: &'a Path,
    grant: GroupGrant,
    met: &'a Met<'a>,
    levels: Vec<Level>,
    /// The first thing that could not be looked at.
    unseen: Option<HostError>,
    goes_on: bool,
}

/// See [`ports::host::HostFs::give_group`].
pub(super) fn give_group(path: &Path, links: Links, grant: GroupGrant, met: &Met<'_>) -> HostResult<bool> {
    let fail = |op, e: Errno| HostError::new(op, path, e);
    let refer = if links == Links::Follow { OFlags::PATH | OFlags::CLOEXEC } else { REFER };
    let top = match openat(CWD, path, refer, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(true),
        Err(e) => return Err(fail("open", e)),
    };
    let stat = fstat(&top).map_err(|e| fail("stat", e))?;
    let mut walk = Walk { path, grant, met, levels: Vec::new(), unseen: None, goes_on: true };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        walk.change(&top, &stat, c"");
        return Ok(true);
    }
    let top = openat(&top, c".", OPEN_DIR, Mode::empty()).map_err(|e| fail("open", e))?;
    walk.below(top).map_err(|e| fail("walk", e))?;
    match walk.unseen {
        Some(e) => Err(e),
        None => Ok(walk.goes_on),
    }
}

impl Walk<'_> {
    /// Fails only where the way up is lost.
    fn below(&mut self, top: OwnedFd) -> Result<(), Errno> {
        let mut here = top;
        self.enter(CString::default(), place(&here)?, &here);
        while let Some(lowest) = self.levels.last_mut().filter(|_| self.goes_on) {
            if let Some(name) = lowest.dirs.pop() {
                let below = openat(&here, &name, OPEN_DIR, Mode::empty()).and_then(|fd| Ok((place(&fd)?, fd)));
                match below {
                    Ok((identity, fd)) => {
                        self.enter(name, identity, &fd);
                        here = fd;
                    }
                    // It went, or something else took its name.
                    Err(Errno::NOENT) => {}
                    Err(Errno::NOTDIR | Errno::LOOP) => self.give(&here, &name),
                    Err(e) => self.not_seen("open", &name, e),
                }
                continue;
            }
            let is_top = self.levels.len() == 1;
            // The path itself says that all is given.
            if !is_top || self.unseen.is_none() {
                match fstat(&here) {
                    Ok(stat) => self.change(&here, &stat, c""),
                    Err(e) => self.not_seen("stat", c"", e),
                }
            }
            self.levels.pop();
            if let Some(above) = self.levels.last() {
                here = climb(&here, above.identity)?;
            }
        }
        Ok(())
    }

    /// Gives what is in a directory but the directories, which are noted.
    fn enter(&mut self, name: CString, identity: Identity, fd: &OwnedFd) {
        self.levels.push(Level { name, identity, dirs: Vec::new() });
        let entries = match Dir::read_from(fd) {
            Ok(entries) => entries,
            Err(e) => return self.not_seen("readdir", c"", e),
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(e) => return self.not_seen("readdir", c"", e),
            };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            if !is_dir(fd, name, entry.file_type()) {
                self.give(fd, name);
            } else if let Some(level) = self.levels.last_mut() {
                level.dirs.push(name.to_owned());
            }
            if !self.goes_on {
                return;
            }
        }
    }

    fn give(&mut self, parent: &OwnedFd, name: &CStr) {
        match openat(parent, name, REFER, Mode::empty()).and_then(|fd| Ok((fstat(&fd)?, fd))) {
            Ok((stat, fd)) => self.change(&fd, &stat, name),
            Err(Errno::NOENT) => {}
            Err(e) => self.not_seen("stat", name, e),
        }
    }

    fn change(&mut self, fd: &(impl AsFd + AsRawFd), stat: &Stat, name: &CStr) {
        let refused = self.changed(fd, stat).err().map(|(op, e)| self.error(op, name, e));
        self.goes_on = (self.met)(refused);
    }

    /// A group that is refused leaves the bits to be tried: file systems of servers take one and not the other.
    fn changed(&self, fd: &(impl AsFd + AsRawFd), stat: &Stat) -> Result<(), (&'static str, Errno)> {
        let bits = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Some(self.grant.dir_bits),
            FileType::Symlink => None,
            _ => Some(self.grant.file_bits),
        };
        let (has, gid) = (stat.st_mode & 0o7777, self.grant.gid);
        let given = if stat.st_gid == gid {
            Ok(())
        } else {
            chownat(fd, c"", None, Some(Gid::from_raw(gid)), AtFlags::EMPTY_PATH).map_err(|e| ("chown", e))
        };
        let set = match bits.map(|bits| has | bits) {
            // A change of owner takes setuid and setgid of programs away.
            Some(mode) if mode != has || (stat.st_gid != gid && mode & 0o6000 != 0) => {
                let set = fs::set_permissions(by_descriptor(fd), fs::Permissions::from_mode(mode));
                set.map_err(|e| ("chmod", Errno::from_io_error(&e).unwrap_or(Errno::IO)))
            }
            _ => Ok(()),
        };
        given.and(set)
    }

    fn not_seen(&mut self, op: &'static str, name: &CStr, e: Errno) {
        if self.unseen.is_none() {
            self.unseen = Some(self.error(op, name, e));
        }
    }

    fn error(&self, op: &'static str, name: &CStr, e: Errno) -> HostError {
        let names = self.levels.iter().map(|level| &*level.name).chain([name]).filter(|name| !name.is_empty());
        let below: PathBuf = names.map(|name| OsStr::from_bytes(name.to_bytes())).collect();
        HostError::new(op, self.path.join(below), e)
    }
}
