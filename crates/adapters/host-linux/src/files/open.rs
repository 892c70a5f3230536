//! Opening what stands at a path that a container can shape.
//!
//! A pipe makes a plain open wait for ever, a device may act on being opened (a watchdog starts, a tape rewinds), a link leads
//! elsewhere. So the path is only referred to at first, which touches nothing; what it leads to is looked at; and that very
//! inode, however its name changed meanwhile, is then opened.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use ports::host::Links;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

/// Opens a regular file for reading. Waits for nobody: not for the other end of a pipe, not for who holds a lease.
///
/// # Errors
/// The system's own (a socket is `ENXIO`); `InvalidInput` when it is something else than a regular file, and then left unopened.
pub fn open_regular(path: &Path, links: Links) -> io::Result<File> {
    open_if(path, links, Metadata::is_file, "not a regular file")
}

/// Opens a regular file or a folder for reading, links followed; otherwise as [`open_regular`].
///
/// # Errors
/// The system's own; `InvalidInput` when it is neither.
pub fn open_file_or_folder(path: &Path) -> io::Result<File> {
    open_if(path, Links::Follow, |m| m.is_file() || m.is_dir(), "neither a regular file nor a folder")
}

/// Opens for reading what [`reference`] or a look-up of one's own refers to; otherwise as [`open_regular`].
pub(super) fn open_referred(there: OwnedFd) -> io::Result<File> {
    reopen(File::from(there), Metadata::is_file, "not a regular file")
}

fn open_if(path: &Path, links: Links, wanted: fn(&Metadata) -> bool, refusal: &'static str) -> io::Result<File> {
    reopen(File::from(reference(path, links)?), wanted, refusal)
}

fn reopen(there: File, wanted: fn(&Metadata) -> bool, refusal: &'static str) -> io::Result<File> {
    let facts = there.metadata()?;
    if facts.file_type().is_socket() {
        // What the system says of opening one.
        return Err(Errno::NXIO.into());
    }
    if !wanted(&facts) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, refusal));
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, by_descriptor(&there), flags, Mode::empty())?.into())
}

/// Refers to what is at a path without opening it.
pub(super) fn reference(path: &Path, links: Links) -> io::Result<OwnedFd> {
    let last = match links {
        Links::Follow => OFlags::empty(),
        Links::Refuse => OFlags::NOFOLLOW,
    };
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC | last, Mode::empty())?)
}

/// A path that leads to what a descriptor refers to, whatever became of its name.
pub(super) fn by_descriptor(fd: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}
