//! A terminal in a container, whose other end goes to who waits for it on a socket.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Uid, openat2};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};

use crate::fds;
use crate::helper::Own;

/// `DEVPTS_SUPER_MAGIC`.
const DEVPTS: i128 = 0x1cd1;
/// Numbers of the device that makes terminals (`TTYAUX_MAJOR`).
const PTMX: (u32, u32) = (5, 2);

/// Both ends of a new one.
#[derive(Debug)]
pub(crate) struct Terminal {
    master: OwnedFd,
    /// The container's end.
    pub(crate) slave: OwnedFd,
}

impl Terminal {
    /// Makes one in the mounts that this process is in, for a user; it becomes this session's. Whatever else a container has put in the place of
    /// the device is refused before it is opened (CVE-2025-52565).
    pub(crate) fn open(own: &Own, uid: u32) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let how = ResolveFlags::NO_MAGICLINKS;
        let device =
            openat2(CWD, "/dev/pts/ptmx", flags, Mode::empty(), how).map_err(io::Error::from).map_err(named)?;
        let facts = rustix::fs::fstat(&device)?;
        let is_ptmx = FileType::from_raw_mode(facts.st_mode) == FileType::CharacterDevice
            && (rustix::fs::major(facts.st_rdev), rustix::fs::minor(facts.st_rdev)) == PTMX
            && i128::from(rustix::fs::fstatfs(&device)?.f_type) == DEVPTS;
        if !is_ptmx {
            return Err(io::Error::other("/dev/pts/ptmx of the container is not what terminals are made by"));
        }
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let master = own.reopen(&device, flags).map_err(named)?;
        unlockpt(&master)?;
        let slave = ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        rustix::fs::fchown(&slave, Some(Uid::from_raw(uid)), None)?;
        rustix::process::ioctl_tiocsctty(&slave)?;
        Ok(Self { master, slave })
    }

    /// Gives the other end to who waits on a socket, of which `waits` is a descriptor; answers the three streams.
    pub(crate) fn give(self, own: &Own, waits: &OwnedFd) -> io::Result<[OwnedFd; 3]> {
        // The node's paths are out of reach, and addresses of sockets have no descriptors.
        let socket = own.with(waits, |name| UnixStream::connect(name))?;
        fds::send(&socket, b"/dev/ptmx", &[self.master.as_fd()])?;
        Ok([self.slave.try_clone()?, self.slave.try_clone()?, self.slave])
    }
}

fn named(e: io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("/dev/pts/ptmx: {e}"))
}
