//! `/dev` of a container: what every container has, and what it is given.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, chownat, makedev, mknodat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::mounts::Detached;
use super::place::{self, Make};
use super::spec::Device;
use crate::helper::{Own, at};
use crate::null::{self, is_null};

/// Devices that every container has, by their numbers.
const GIVEN: [(&str, u32, u32); 6] = [
    ("/dev/null", 1, 3),
    ("/dev/random", 1, 8),
    ("/dev/full", 1, 7),
    ("/dev/tty", 5, 0),
    ("/dev/zero", 1, 5),
    ("/dev/urandom", 1, 9),
];
/// Links in `/dev` that every container has.
const LINKS: [(&str, &str); 4] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
];
const DEV: &str = "/dev";
const NULL: &str = "/dev/null";
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
    // Modes are meant as they are.
    let mask = rustix::process::umask(Mode::empty());
    for device in given.chain(asked.iter().cloned()).filter(|d| !place::is(&d.path, PTMX)) {
        make_one(&device).map_err(at(&device.path))?;
    }
    rustix::process::umask(mask);
    let dev = place::folders(Path::new(DEV))?.there;
    match unlinkat(&dev, "ptmx", AtFlags::empty()) {
        Err(e) if e != Errno::NOENT => return Err(e.into()),
        _ => symlinkat("pts/ptmx", &dev, "ptmx")?,
    }
    let core = place::open(Path::new("/proc/kcore"), OFlags::PATH).is_ok().then_some(("/proc/kcore", "core"));
    for (to, name) in LINKS.into_iter().chain(core) {
        match symlinkat(to, &dev, name) {
            Err(e) if e != Errno::EXIST => return Err(e.into()),
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
    let (Some(folder), Some(name)) = (device.path.parent(), device.path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = place::folders(folder)?.there;
    let mode = Mode::from_bits_truncate(device.file_mode.unwrap_or(MODE));
    match mknodat(&folder, name, kind, mode, makedev(device.major, device.minor)) {
        Err(Errno::EXIST) => return Ok(()),
        other => other?,
    }
    let (uid, gid) = (Uid::from_raw(device.uid), Gid::from_raw(device.gid));
    Ok(chownat(&folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The container's `/dev/null`, which is one (CVE-2025-31133).
pub(super) fn null() -> io::Result<OwnedFd> {
    let there = place::open(Path::new(NULL), OFlags::PATH | OFlags::NOFOLLOW).map_err(at(Path::new(NULL)))?;
    is_null(&there)?.then_some(there).ok_or_else(|| io::Error::other("/dev/null of the container is none"))
}

/// Streams that are the node's `/dev/null` become the container's.
pub(super) fn own_null(own: &Own, streams: &mut [OwnedFd; 3]) -> io::Result<()> {
    null::replace(streams, || own.reopen(null()?, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC))
}

/// Has `/dev/console` be the container's terminal.
pub(super) fn console(terminal: &OwnedFd) -> io::Result<()> {
    let place = place::place(Path::new("/dev/console"), Make::File)?;
    Detached::again_of(terminal, false)?.attach(place.there).map_err(at(&place.path))
}
