//! `/dev/null`, which the streams of a container or a command may be.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Mode, OFlags, makedev, mknodat, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

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

/// Streams that are such a device become one that nobody else has: root in a container may change the mode of what its streams are, without any
/// capability, and the node's is everybody's.
pub(crate) fn give_own(streams: &mut [OwnedFd; 3]) -> io::Result<()> {
    let mut own: Option<OwnedFd> = None;
    for stream in streams {
        if !is_null(stream)? {
            continue;
        }
        let null = match &own {
            Some(null) => null.try_clone()?,
            None => own.insert(make()?).try_clone()?,
        };
        *stream = null;
    }
    Ok(())
}

/// In a file system of its own, which is mounted nowhere and goes with it.
fn make() -> io::Result<OwnedFd> {
    let system = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&system)?;
    let folder = fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NOEXEC)?;
    // The mode is meant as it is.
    let mask = rustix::process::umask(Mode::empty());
    let mode = Mode::from_bits_truncate(MODE);
    let made = mknodat(&folder, "null", FileType::CharacterDevice, mode, makedev(NUMBERS.0, NUMBERS.1));
    rustix::process::umask(mask);
    made?;
    Ok(openat(&folder, "null", OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?)
}
