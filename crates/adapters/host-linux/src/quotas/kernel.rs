//! The calls that neither the standard library nor rustix has: a project id is an attribute of an inode that an ioctl reads and
//! writes, quotas are asked for by `quotactl_fd` (Linux 5.14).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use model::reading::DiskUse;
use rustix::ioctl::{Getter, Setter, ioctl, opcode};

/// `struct fsxattr` of `linux/fs.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    flags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    cow_extent_size: u32,
    pad: [u8; 8],
}

const GET: rustix::ioctl::Opcode = opcode::read::<Attributes>(b'X', 31);
const SET: rustix::ioctl::Opcode = opcode::write::<Attributes>(b'X', 32);
/// `FS_XFLAG_PROJINHERIT`: what is made in the directory belongs to its project.
const INHERIT: u32 = 0x200;

/// `PRJQUOTA`: the kind of quota.
const PROJECTS: libc::c_int = 2;
const GET_INFO: libc::c_int = 0x80_0005;
const GET_QUOTA: libc::c_int = 0x80_0007;
const SET_QUOTA: libc::c_int = 0x80_0008;
/// `QIF_BLIMITS`: of a [`libc::dqblk`], both limits of bytes are meant.
const BYTE_LIMITS: u32 = 1;

fn attributes(dir: &OwnedFd) -> io::Result<Attributes> {
    // SAFETY: the kernel fills a `struct fsxattr`, which `Attributes` is; any bytes are one.
    let get = unsafe { Getter::<GET, Attributes>::new() };
    // SAFETY: `GET` is that call, and takes what `get` points to.
    Ok(unsafe { ioctl(dir.as_fd(), get) }?)
}

/// The project of a directory; 0: none.
pub(super) fn project(dir: &OwnedFd) -> io::Result<u32> {
    attributes(dir).map(|a| a.project)
}

/// Gives the directory, and what will be made in it, to a project.
pub(super) fn set_project(dir: &OwnedFd, id: u32) -> io::Result<()> {
    let mut wanted = attributes(dir)?;
    (wanted.project, wanted.flags) = (id, wanted.flags | INHERIT);
    // SAFETY: the kernel reads a `struct fsxattr`, which `Attributes` is.
    let set = unsafe { Setter::<SET, Attributes>::new(wanted) };
    // SAFETY: `SET` is that call, and takes what `set` points to.
    Ok(unsafe { ioctl(dir.as_fd(), set) }?)
}

/// Calls `quotactl_fd` for projects, with what it fills or reads.
fn quotactl<T>(dir: &OwnedFd, command: libc::c_int, id: u32, data: &mut MaybeUninit<T>) -> io::Result<()> {
    let command = (command << 8) | PROJECTS;
    // SAFETY: the callers give the structure of their command: the kernel reads or writes no more than it.
    let code = unsafe { libc::syscall(libc::SYS_quotactl_fd, dir.as_raw_fd(), command, id, data.as_mut_ptr()) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether the file system of the directory counts projects.
pub(super) fn counts(dir: &OwnedFd) -> bool {
    // `struct if_dqinfo`: two times of 8 bytes, two words of 4.
    quotactl(dir, GET_INFO, 0, &mut MaybeUninit::<[u64; 3]>::zeroed()).is_ok()
}

fn quota(dir: &OwnedFd, id: u32) -> io::Result<libc::dqblk> {
    let mut quota = MaybeUninit::<libc::dqblk>::zeroed();
    quotactl(dir, GET_QUOTA, id, &mut quota)?;
    // SAFETY: numbers alone, all zero before the kernel filled them.
    Ok(unsafe { quota.assume_init() })
}

/// What a project takes on the directory's file system. One that xfs has no record of takes nothing.
pub(super) fn usage(dir: &OwnedFd, id: u32) -> io::Result<DiskUse> {
    match quota(dir, id) {
        Ok(q) => Ok(DiskUse { bytes: q.dqb_curspace, inodes: q.dqb_curinodes }),
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(DiskUse::default()),
        Err(e) => Err(e),
    }
}

/// Takes limits away that somebody set for the project.
pub(super) fn clear_limits(dir: &OwnedFd, id: u32) -> io::Result<()> {
    match quota(dir, id) {
        Ok(q) if q.dqb_bhardlimit == 0 && q.dqb_bsoftlimit == 0 => Ok(()),
        Ok(mut q) => {
            (q.dqb_bhardlimit, q.dqb_bsoftlimit, q.dqb_valid) = (0, 0, BYTE_LIMITS);
            quotactl(dir, SET_QUOTA, id, &mut MaybeUninit::new(q))
        }
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        Err(e) => Err(e),
    }
}
