//! Commands that the supervisor runs itself (`bosun-pod exec`), until they have begun.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use super::tools::{TIME_LIMIT, watched};
use super::{Exec, Supervisor};
use crate::command::{MAX_ORDER, Order};
use crate::wire::{Answer, MAX_FDS, frame};
use crate::{clock, fds, hold};

/// A process that is about to become a command.
#[derive(Debug)]
pub(super) struct Entering {
    pub(super) pid: Pid,
    pub(super) ended: OwnedFd,
    /// Ends when it has begun; before that, what it says is why it has not.
    pub(super) told: UnixStream,
    pub(super) client: u64,
    words: Vec<u8>,
    deadline: Instant,
}

impl Entering {
    /// How long it still has; `None`: no longer, and it is killed.
    pub(super) fn time_left(&self, now: Instant) -> Option<Duration> {
        let left = self.deadline.checked_duration_since(now).filter(|l| !l.is_zero());
        if left.is_none() {
            // An error means that it ended just now, which the loop sees.
            let _ = pidfd_send_signal(&self.ended, Signal::KILL);
        }
        left
    }

    /// Reads what it says; whether that is all.
    fn hear(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.told.read(&mut buffer) {
                Ok(0) => return true,
                Ok(count) => {
                    let room = MAX_ORDER.saturating_sub(self.words.len());
                    self.words.extend_from_slice(&buffer[..count.min(room)]);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return false,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
    }
}

impl Supervisor {
    /// Begins a command in a container.
    pub(super) fn enter(
        &mut self,
        client: u64,
        id: &str,
        process: PathBuf,
        mut streams: Vec<OwnedFd>,
    ) -> io::Result<Option<Answer>> {
        while streams.len() < MAX_FDS {
            streams.push(OpenOptions::new().read(true).write(true).open("/dev/null")?.into());
        }
        let (pid, first) = match self.running(id) {
            Ok(first) => first,
            Err(answer) => return Ok(Some(answer)),
        };
        // Read while nobody has reaped it: its number is its own.
        let cgroups = fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero()))?;
        let order = frame(&Order { id: id.to_owned(), process, cgroups }, MAX_ORDER).map_err(io::Error::other)?;
        let (told, theirs) = UnixStream::pair()?;
        let mut passed: Vec<BorrowedFd<'_>> = streams.iter().map(AsFd::as_fd).collect();
        passed.push(first.as_fd());
        if fds::send(&told, &order, &passed)? != order.len() {
            return Err(io::Error::other("the order does not fit into a socket"));
        }
        let (pid, ended) = spawn(first.as_fd(), theirs)?;
        told.set_nonblocking(true)?;
        let deadline = Instant::now() + TIME_LIMIT;
        self.entering.push(Entering { pid, ended, told, client, words: Vec::new(), deadline });
        Ok(None)
    }

    /// What is about to become a command says something, or has become one.
    pub(super) fn entered(&mut self, pid: Pid) {
        let Some(at) = self.entering.iter().position(|e| e.pid == pid) else { return };
        if !self.entering[at].hear() {
            return;
        }
        let Entering { pid, ended, client, words, deadline, .. } = self.entering.swap_remove(at);
        if !words.is_empty() {
            let why = String::from_utf8_lossy(&words).into_owned();
            return self.tell(client, &Answer::failed(why));
        }
        if deadline <= Instant::now() {
            return self.tell(client, &Answer::failed(format!("the command did not begin within {TIME_LIMIT:?}")));
        }
        self.tell(client, &Answer::Started { pid: pid.as_raw_nonzero().get(), started_at: clock::now() });
        self.execs.push(Exec { pid, ended, client });
    }
}

/// Starts this program once more, in the PID namespace of a container: such a namespace is for children alone, so that this process
/// has its own back afterwards.
fn spawn(container: BorrowedFd<'_>, told: UnixStream) -> io::Result<(Pid, OwnedFd)> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let mut command = Command::new(hold::ME);
    command.arg0("bosun-pod").arg("exec").env_clear().current_dir("/");
    command.stdin(OwnedFd::from(told)).stdout(Stdio::null()).stderr(Stdio::null());
    move_into_thread_name_spaces(container, ThreadNameSpaceType::PROCESS_ID)?;
    let child = command.spawn();
    // Else all that is started from here on would be in the container.
    move_into_thread_name_spaces(own.as_fd(), ThreadNameSpaceType::PROCESS_ID)?;
    watched(i32::try_from(child?.id()).unwrap_or_default())
}
