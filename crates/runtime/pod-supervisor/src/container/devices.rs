//! `/dev` of a container: what every container has, and what it is given.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid, chmod, chownat, makedev, mknodat};
use rustix::io::Errno;

use super::mounts::Detached;
use super::place;
use super::spec::Device;
use crate::helper::at;

/// Devices that every container has, by their numbers.
const GIVEN: [(&str, u32, u32); 6] = [
    ("/dev/null", 1, 3),
    ("/dev/random", 1, 8),
    ("/dev/full", 1, 7),
    ("/dev/tty", 5, 0),
    ("/dev/zero", 1, 5),
    ("/dev/urandom", 1, 9),
];
/// Links that every container has.
const LINKS: [(&str, &str); 4] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];
const NULL: &str = "/dev/null";
/// Numbers of that device.
const NULL_NUMBERS: (u32, u32) = (1, 3);
/// Made by `devpts`, to which a link leads.
const PTMX: &str = "/dev/ptmx";
/// Of a device, where nobody says otherwise.
const MODE: u32 = 0o666;

/// Makes devices and links; what stands at such a place stays.
pub(super) fn make(asked: &[Device]) -> io::Result<()> {
    let given = GIVEN.iter().filter(|(path, ..)| !asked.iter().any(|d| place::is(&d.path, path)));
    let given = given.map(|&(path, major, minor)| Device {
        path: path.into(),
        kind: 'c',
        major,
        minor,
        file_mode: None,
        uid: 0,
        gid: 0,
    });
    for device in given.chain(asked.iter().cloned()).filter(|d| !place::is(&d.path, PTMX)) {
        make_one(&device).map_err(at(&device.path))?;
    }
    match fs::remove_file(PTMX) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => symlink("pts/ptmx", PTMX)?,
    }
    let core = Path::new("/proc/kcore").exists().then_some(("/proc/kcore", "/dev/core"));
    for (to, from) in LINKS.into_iter().chain(core) {
        match symlink(to, from) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

fn make_one(device: &Device) -> io::Result<()> {
    let kind = match device.kind {
        'c' | 'u' => FileType::CharacterDevice,
        'b' => FileType::BlockDevice,
        'p' => FileType::Fifo,
        other => return Err(io::Error::other(format!("{other:?} is no type of a device"))),
    };
    let name = device.path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let path = match device.path.parent() {
        Some(folder) => place::folders(folder)?.join(name),
        None => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let mode = Mode::from_bits_truncate(device.file_mode.unwrap_or(MODE));
    match mknodat(CWD, &path, kind, mode, makedev(device.major, device.minor)) {
        Err(Errno::EXIST) => return Ok(()),
        other => other?,
    }
    // Whatever the mask for new files is.
    chmod(&path, mode)?;
    let (uid, gid) = (Uid::from_raw(device.uid), Gid::from_raw(device.gid));
    Ok(chownat(CWD, &path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The container's `/dev/null`, which is one (CVE-2025-31133).
pub(super) fn null() -> io::Result<OwnedFd> {
    let there = place::open(Path::new(NULL)).map_err(at(Path::new(NULL)))?;
    is_null(&there)?.then_some(there).ok_or_else(|| io::Error::other("/dev/null of the container is none"))
}

fn is_null(fd: &OwnedFd) -> io::Result<bool> {
    let facts = rustix::fs::fstat(fd)?;
    let numbers = (rustix::fs::major(facts.st_rdev), rustix::fs::minor(facts.st_rdev));
    Ok(FileType::from_raw_mode(facts.st_mode) == FileType::CharacterDevice && numbers == NULL_NUMBERS)
}

/// Streams that are the node's `/dev/null` become the container's.
pub(super) fn own_null(streams: &mut [OwnedFd; 3]) -> io::Result<()> {
    for stream in streams {
        if is_null(stream)? {
            let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
            let own =
                rustix::fs::open(NULL, flags, Mode::empty()).map_err(io::Error::from).map_err(at(Path::new(NULL)))?;
            if !is_null(&own)? {
                return Err(io::Error::other("/dev/null of the container is none"));
            }
            *stream = own;
        }
    }
    Ok(())
}

/// Has `/dev/console` be the container's terminal.
pub(super) fn console(terminal: &OwnedFd) -> io::Result<()> {
    let path = Path::new("/dev/console");
    let flags = OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::NONBLOCK;
    let mut open = OpenOptions::new();
    open.write(true).create(true).mode(MODE).custom_flags(flags.bits().cast_signed());
    open.open(path).map_err(at(path))?;
    Detached::again_of(terminal, false)?.attach(place::open(path)?).map_err(at(path))
}
