//! Directories that a layer has entries in without listing them are as they are in the layers below.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, XattrFlags, fchmod, fchown, fgetxattr,
    flistxattr, fsetxattr, fstat, futimens, openat2,
};
use rustix::io::Errno;

use crate::place::taken;
use crate::tree::DIRECTORY;

/// Why it failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot give {path:?} what the layers below say")]
pub struct SettleError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Gives each implied directory the owner, mode, time and attributes that it has in the topmost of the layers below (`lowers`, topmost first).
/// Where none has it, it stays as it was made. Doing it twice is the same as once.
///
/// # Errors
/// The disk refuses.
pub fn settle(layer: &Path, implied: &[Vec<u8>], lowers: &[PathBuf]) -> Result<(), SettleError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |e: Errno| SettleError { path, source: e.into() }
    };
    if implied.is_empty() {
        return Ok(());
    }
    let top = rustix::fs::openat(CWD, layer, DIRECTORY, Mode::empty()).map_err(fail(layer))?;
    let mut below = Vec::with_capacity(lowers.len());
    for lower in lowers {
        below.push(rustix::fs::openat(CWD, lower, DIRECTORY, Mode::empty()).map_err(fail(lower))?);
    }
    for path in implied {
        use std::os::unix::ffi::OsStrExt;
        let named = layer.join(std::ffi::OsStr::from_bytes(path));
        let to = match beneath(&top, path, DIRECTORY) {
            Ok(to) => to,
            // Something else took its place later in the archive.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            Err(e) => return Err(fail(&named)(e)),
        };
        if let Some(from) = topmost(&below, path).map_err(fail(&named))? {
            copy(&from, &to).map_err(fail(&named))?;
        }
    }
    Ok(())
}

fn beneath(root: &OwnedFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let strict = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(root, path, flags, Mode::empty(), strict)
}

/// The first layer that says something of this path decides; a whiteout or a file says that there is no such directory.
fn topmost(below: &[OwnedFd], path: &[u8]) -> Result<Option<OwnedFd>, Errno> {
    for lower in below {
        match beneath(lower, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC) {
            Ok(found) if FileType::from_raw_mode(fstat(&found)?.st_mode) == FileType::Directory => {
                return beneath(lower, path, DIRECTORY).map(Some);
            }
            Ok(_) | Err(Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(Errno::NOENT) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

/// Gives what is open as `to` the owner, mode, attributes and time of `from`. Owner first, as a new one takes set-user-id and capabilities away.
pub(crate) fn copy(from: &impl AsFd, to: &impl AsFd) -> Result<(), Errno> {
    let is = fstat(from)?;
    fchown(to, Some(Uid::from_raw(is.st_uid)), Some(Gid::from_raw(is.st_gid)))?;
    fchmod(to, Mode::from_raw_mode(is.st_mode))?;
    for name in attributes(from)? {
        let mut value = vec![0; 64 << 10];
        let length = fgetxattr(from, name.as_str(), &mut value)?;
        fsetxattr(to, name.as_str(), &value[..length], XattrFlags::empty())?;
    }
    futimens(to, &times(is.st_mtime, i64::try_from(is.st_mtime_nsec).unwrap_or(0)))
}

/// Read and changed at that time.
pub(crate) fn times(seconds: i64, nanoseconds: i64) -> Timestamps {
    let at = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    Timestamps { last_access: at, last_modification: at }
}

/// Names of what unpacking sets, so neither labels nor overlayfs' own.
fn attributes(fd: &impl AsFd) -> Result<Vec<String>, Errno> {
    let mut names = vec![0; 64 << 10];
    let length = match flistxattr(fd, &mut names) {
        Err(Errno::OPNOTSUPP) => 0,
        other => other?,
    };
    let names = names[..length].split(|b| *b == 0).filter_map(|name| std::str::from_utf8(name).ok());
    Ok(names.filter(|name| taken(name)).map(str::to_owned).collect())
}
