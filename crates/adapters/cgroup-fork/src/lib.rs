//! Copies a process of one thread (`fork(2)`), into a cgroup of version 2 and a PID namespace of its own if that is wanted (`clone3(2)`, Linux 5.7).
//!
//! Who is moved into a cgroup afterwards waits until the kernel has waited for all processors, 5 to 15 ms where nobody was moved just before; who begins
//! there does not. Before Linux 6.3, where nobody has mended it since (42a11bf5c543), who begins there has the processors and memory nodes of its parent
//! and not the cgroup's: the caller looks whether they are the same. It stands apart from `host-linux`, as it is to be in a program that is small. No
//! library has such a call that is safe.

#![deny(missing_docs)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::process::Pid;

/// `libc` has it as a number of 32 bits, in which it is 0.
const CLONE_INTO_CGROUP: u64 = 1 << 33;
/// As a shell has it for a program that cannot be started.
const NOT_STARTED: i32 = 126;

/// The PID namespace of the new process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processes {
    /// That of its parent's children.
    Shared,
    /// A new one, whose process 1 it is. If it cannot be started, the parent's children are where they were.
    Own,
}

/// Has a new process, a copy of this one, do something, and end, if it has not become another program. In the cgroup of `folder` from its beginning. It has
/// all open that this one has, but for `folder`: a path of the program that it becomes could lead through that. The caller reaps it.
///
/// # Errors
/// This process has several threads ([`io::ErrorKind::Unsupported`]), or the kernel refuses: among others `EAGAIN`, where the cgroup has all the
/// processes that it may have, and `ENOSYS` or `EPERM`, where somebody keeps `clone3` from it. Nothing was done then.
pub fn fork(folder: Option<OwnedFd>, processes: Processes, does: impl FnOnce()) -> io::Result<Pid> {
    if let Some(pid) = copy(folder.as_ref(), processes)? {
        return Ok(pid);
    }
    // From here on this is the new process, which never returns, whatever panics.
    let end = End;
    drop(folder);
    does();
    drop(end);
    Err(io::Error::other("a process goes on that has ended"))
}

/// Ends this process when it is dropped.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        // SAFETY: ends this process, without what the program that it is a copy of does at its end.
        unsafe { libc::_exit(NOT_STARTED) }
    }
}

/// The new process, or, in that, nothing.
fn copy(folder: Option<&OwnedFd>, processes: Processes) -> io::Result<Option<Pid>> {
    // What another thread has locked would stay so in the new process.
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "a process of several threads is not copied"));
    }
    let apart = match processes {
        Processes::Shared => 0,
        Processes::Own => libc::CLONE_NEWPID,
    };
    let pid = match folder {
        Some(folder) => clone_into(folder, apart)?,
        None => clone(apart)?,
    };
    Ok(Pid::from_raw(pid))
}

/// `clone(2)`, which nobody keeps from who may start programs.
fn clone(apart: i32) -> io::Result<i32> {
    let flags = libc::c_long::from(libc::SIGCHLD | apart);
    let none: libc::c_long = 0;
    // SAFETY: nothing is pointed to. The new process has a copy of all memory, its stack among it, and there is no thread but this one that could have
    // been at something.
    answer("clone", unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) })
}

fn clone_into(folder: &OwnedFd, apart: i32) -> io::Result<i32> {
    let number = |n| u64::try_from(n).map_err(io::Error::other);
    let call = libc::clone_args {
        flags: CLONE_INTO_CGROUP | number(apart)?,
        pidfd: 0,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: number(libc::SIGCHLD)?,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: number(folder.as_raw_fd())?,
    };
    // SAFETY: the kernel only reads the structure; for the rest see `clone`.
    answer("clone3", unsafe { libc::syscall(libc::SYS_clone3, std::ptr::from_ref(&call), size_of_val(&call)) })
}

fn answer(call: &str, code: libc::c_long) -> io::Result<i32> {
    let failed = io::Error::last_os_error();
    match i32::try_from(code).map_err(io::Error::other)? {
        -1 => Err(io::Error::new(failed.kind(), format!("{call}: {failed}"))),
        pid => Ok(pid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it does in a process of one thread is tested where such a process is: `pod-supervisor`.
    #[test]
    fn a_process_with_threads_is_not_copied() {
        let done = fork(None, Processes::Shared, || ()).map_err(|e| e.kind());
        assert_eq!(done, Err(io::ErrorKind::Unsupported));
    }
}
