//! `/dev/null`, which the streams of a container or a command may be.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Mode, OFlags, makedev, mknodat, openat};

use crate::helper::unmounted;

/// Numbers of the device.
const NUMBERS: (u32, u32) = (1, 3);
/// Everybody may use it.
const MODE: u32 = 0o666;

/// Whether it is one.
pub(crate) fn is_null(fd: &OwnedFd) -> io::Result<bool> {
    let facts = rustix::fs::fstat(fd)?;
    let numbers = (rustix::fs::major(facts.st_rdev), rustix::fs::minor(facts.st_rdev));
    Ok(FileType::from_raw_mode(facts.st_mode) == FileType::CharacterDevice && numbers == NUMBERS)
}

/// Streams that are such a device become others.
pub(crate) fn replace(streams: &mut [OwnedFd; 3], other: impl Fn() -> io::Result<OwnedFd>) -> io::Result<()> {
    for stream in streams {
        if is_null(stream)? {
            *stream = other()?;
        }
    }
    Ok(())
}

/// One that nobody else has, in a file system that is mounted nowhere and goes with it: root in a container may change the mode of what its streams are,
/// without any capability, and the node's is everybody's.
pub(crate) fn own() -> io::Result<OwnedFd> {
    let folder = unmounted("tmpfs")?;
    // The mode is meant as it is.
    let mask = rustix::process::umask(Mode::empty());
    let mode = Mode::from_bits_truncate(MODE);
    let made = mknodat(&folder, "null", FileType::CharacterDevice, mode, makedev(NUMBERS.0, NUMBERS.1));
    rustix::process::umask(mask);
    made?;
    Ok(openat(&folder, "null", OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?)
}
