//! Containers and commands that the supervisor starts itself (`bosun-pod start` and `exec`), until they have begun.

use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, pidfd_send_signal};
use serde::Serialize;

use super::tools::{TIME_LIMIT, watched};
use crate::helper::{BEGIN, MAX_ORDER, PID};
use crate::{command, container, helper, hold};

/// What is begun, and who waits for it.
#[derive(Clone, Debug)]
pub(super) enum Becomes {
    Container { id: String, client: u64 },
    Command { client: u64 },
}

impl Becomes {
    /// What it is in the words for what went wrong.
    fn what(&self) -> &'static str {
        match self {
            Self::Container { .. } => container::WHAT,
            Self::Command { .. } => command::WHAT,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Container { .. } => "container",
            Self::Command { .. } => "command",
        }
    }

    /// Whether it is a command that a client has asked for.
    pub(super) fn is_command_of(&self, asked: u64) -> bool {
        matches!(self, Self::Command { client } if *client == asked)
    }
}

/// A container or command that is about to begin.
#[derive(Debug)]
pub(super) struct Entering {
    /// `bosun-pod start` or `exec`, which ends when it has started what becomes the container or command.
    pub(super) helper: Pid,
    ended: OwnedFd,
    /// Ends when it has begun, or has failed.
    pub(super) told: UnixStream,
    pub(super) becomes: Becomes,
    words: Vec<u8>,
    pub(super) deadline: Instant,
}

/// What was told of it until nothing more can come.
#[derive(Debug, PartialEq)]
pub(super) enum Told {
    /// It has this number, and its program took over.
    Began(i32),
    /// Why it did not, and the number of the process that was to become it, if there was one: it ends.
    Failed { why: String, pid: Option<i32> },
}

fn read(words: &[u8], what: &str) -> Told {
    let text = String::from_utf8_lossy(words);
    let (mut pid, mut begun, mut rest) = (None, false, Vec::new());
    for line in text.split_inclusive('\n') {
        match line.strip_prefix(PID).map(|n| n.trim().parse()) {
            // Who started it says so before it can say anything.
            Some(Ok(number)) if pid.is_none() => pid = Some(number),
            _ if line == BEGIN => begun = true,
            _ => rest.push(line),
        }
    }
    match (pid, begun, rest.is_empty()) {
        (Some(pid), true, true) => Told::Began(pid),
        (pid, _, false) => Told::Failed { why: rest.concat().trim_end().to_owned(), pid },
        (pid, ..) => Told::Failed { why: format!("{what} failed: it ended before it began"), pid },
    }
}

impl Entering {
    /// Starts the helper with its order; what goes along are the streams and, for a command, a pidfd of the container's first process; and the
    /// socket that waits for the terminal, if there is to be one.
    pub(super) fn start<T: Serialize>(becomes: Becomes, order: &T, passed: &[BorrowedFd<'_>]) -> io::Result<Self> {
        let verb = match becomes {
            Becomes::Container { .. } => "start",
            Becomes::Command { .. } => "exec",
        };
        let (helper, told) = helper::start(verb, order, passed)?;
        let (helper, ended) = watched(helper.as_raw_nonzero().get())?;
        Ok(Self { helper, ended, told, becomes, words: Vec::new(), deadline: Instant::now() + TIME_LIMIT })
    }

    /// How long it still has.
    pub(super) fn time_left(&self, now: Instant) -> Duration {
        self.deadline.saturating_duration_since(now)
    }

    /// What was told, when that is all.
    pub(super) fn told(&mut self) -> Option<Told> {
        self.hear().then(|| read(&self.words, self.becomes.what()))
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

    /// Ends it. What was to become a command may have been stopped by the container before its number was told: answered, as it has to
    /// be reaped before the container can end.
    pub(super) fn end(mut self) -> Option<(Pid, OwnedFd)> {
        self.hear();
        let told = match read(&self.words, self.becomes.what()) {
            Told::Began(pid) => Some(pid),
            Told::Failed { pid, .. } => pid,
        };
        let first_child = || hold::first_child(self.helper).ok().map(|pid| pid.as_raw_nonzero().get());
        let next = told.or_else(first_child).and_then(|pid| watched(pid).ok());
        for process in next.iter().map(|(_, ended)| ended).chain([&self.ended]) {
            // An error means that it ended just now.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_begun_when_it_says_so_and_nothing_else_was_said() {
        let failed = |why: &str, pid| Told::Failed { why: why.into(), pid };
        let early = "exec failed: it ended before it began";
        for (words, want) in [
            ("pid 7\nbegin\n", Told::Began(7)),
            ("begin\npid 7\n", Told::Began(7)),
            ("begin\npid 7\nexec /x: bad", failed("exec /x: bad", Some(7))),
            ("exec failed: a\nb\n", failed("exec failed: a\nb", None)),
            ("exec failed: a\npid 7\n", failed("exec failed: a", Some(7))),
            ("pid 7\nexec failed: a\npid 8\n", failed("exec failed: a\npid 8", Some(7))),
            ("pid 7\n", failed(early, Some(7))),
            ("begin\n", failed(early, None)),
            ("", failed(early, None)),
        ] {
            assert_eq!(read(words.as_bytes(), "exec"), want, "{words:?}");
        }
    }
}
