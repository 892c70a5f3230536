//! Starts a program in a cgroup of version 2 (`clone3(2)` with `CLONE_INTO_CGROUP`, Linux 5.7).
//!
//! Who is moved there afterwards waits until the kernel has waited for all processors, 5 to 15 ms where nobody was moved just before; who begins there
//! does not. Before Linux 6.3, where nobody has mended it since (42a11bf5c543), who begins there has the processors and memory nodes of its parent
//! and not the cgroup's: the caller looks whether they are the same. It stands apart from `host-linux`, as it is to be in a program that is small. No library has that flag in a safe call.

#![deny(missing_docs)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Pid;

/// `libc` has it as a number of 32 bits, in which it is 0.
const CLONE_INTO_CGROUP: u64 = 1 << 33;
/// As a shell has it for a program that cannot be started.
const NOT_STARTED: i32 = 126;

/// The PID namespace of what is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processes {
    /// That of its parent's children.
    Shared,
    /// A new one, whose process 1 it is. If it cannot be started there, the parent's children are where they were.
    Own,
}

/// Starts a command whose process is in the cgroup of this folder from its beginning. Why its program did not take over is told to `failed`, in the
/// new process, which ends then. The caller reaps it.
///
/// # Errors
/// This process has several threads ([`io::ErrorKind::Unsupported`]), or the kernel refuses: among others `EAGAIN`, where the cgroup has all the
/// processes that it may have, and `ENOSYS`, where the call is not to be had.
pub fn spawn_in(
    folder: impl AsFd,
    processes: Processes,
    command: &mut Command,
    failed: impl FnOnce(&io::Error),
) -> io::Result<Pid> {
    if let Some(pid) = fork_in(folder, processes)? {
        return Ok(pid);
    }
    // From here on this is the new process, which never returns, whatever panics.
    let end = End;
    failed(&command.exec());
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
fn fork_in(folder: impl AsFd, processes: Processes) -> io::Result<Option<Pid>> {
    // What another thread has locked would stay so in the new process.
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "a process of several threads is not copied"));
    }
    let number = |n| u64::try_from(n).map_err(io::Error::other);
    let apart = match processes {
        Processes::Shared => 0,
        Processes::Own => number(libc::CLONE_NEWPID)?,
    };
    let call = libc::clone_args {
        flags: CLONE_INTO_CGROUP | apart,
        pidfd: 0,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: number(libc::SIGCHLD)?,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: number(folder.as_fd().as_raw_fd())?,
    };
    // SAFETY: the kernel only reads the structure. The new process has a copy of all memory, its stack among it, and there is no thread but this one
    // that could have been at something.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, std::ptr::from_ref(&call), size_of_val(&call)) };
    match i32::try_from(pid).map_err(io::Error::other)? {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it does in a process of one thread is tested where such a process is: `pod-supervisor`.
    #[test]
    fn a_process_with_threads_is_not_copied() {
        let folder = tempfile::tempdir().expect("folder");
        let opened = std::fs::File::open(folder.path()).expect("opened");
        let done = spawn_in(&opened, Processes::Shared, &mut Command::new("true"), |_| {}).map_err(|e| e.kind());
        assert_eq!(done, Err(io::ErrorKind::Unsupported));
    }
}
