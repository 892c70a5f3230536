//! Commands that the supervisor runs itself (`bosun-pod exec`), until they have begun.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, pidfd_send_signal};

use super::client::MAX_STREAMS;
use super::tools::{TIME_LIMIT, watched};
use super::{Exec, Supervisor};
use crate::command::{BEGIN, MAX_ORDER, Order, PID};
use crate::wire::{Answer, MAX_FDS, frame};
use crate::{clock, fds, hold};

/// A command that is about to begin.
#[derive(Debug)]
pub(super) struct Entering {
    /// `bosun-pod exec`, which ends when it has started what becomes the command.
    pub(super) helper: Pid,
    ended: OwnedFd,
    /// Ends when it has begun, or has failed.
    pub(super) told: UnixStream,
    client: u64,
    words: Vec<u8>,
    deadline: Instant,
}

/// What was told of a command until nothing more can come.
#[derive(Debug, PartialEq)]
enum Told {
    /// It has this number, and its program took over.
    Began(i32),
    /// Why it did not.
    Failed(String),
}

fn read(words: &[u8]) -> Told {
    let text = String::from_utf8_lossy(words);
    let (mut pid, mut begun, mut rest) = (None, false, Vec::new());
    for line in text.split_inclusive('\n') {
        match line.strip_prefix(PID).map(|n| n.trim().parse()) {
            Some(Ok(number)) => pid = Some(number),
            _ if line == BEGIN => begun = true,
            _ => rest.push(line),
        }
    }
    match (pid, begun, rest.is_empty()) {
        (Some(pid), true, true) => Told::Began(pid),
        (_, _, false) => Told::Failed(rest.concat()),
        _ => Told::Failed("exec failed: it ended before it began".to_owned()),
    }
}

impl Entering {
    /// How long it still has.
    pub(super) fn time_left(&self, now: Instant) -> Duration {
        self.deadline.saturating_duration_since(now)
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

    /// Ends it, whoever of it is there. What a container stopped on its way ends with the container, in whose cgroups it is.
    fn end(mut self) {
        // An error means that it ended just now.
        let _ = pidfd_send_signal(&self.ended, Signal::KILL);
        self.hear();
        if let Told::Began(pid) = read(&[&self.words[..], BEGIN.as_bytes()].concat())
            && let Ok((_, ended)) = watched(pid)
        {
            let _ = pidfd_send_signal(&ended, Signal::KILL);
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
        if self.entering.len() >= MAX_STREAMS {
            return Ok(Some(Answer::failed("too many commands begin at a time in this pod")));
        }
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
        told.set_nonblocking(true)?;
        let mut passed: Vec<BorrowedFd<'_>> = streams.iter().map(AsFd::as_fd).collect();
        passed.push(first.as_fd());
        if fds::send(&told, &order, &passed)? != order.len() {
            return Err(io::Error::other("the order does not fit into a socket"));
        }
        let mut helper = Command::new(hold::ME);
        helper.arg0("bosun-pod").arg("exec").env_clear().current_dir("/");
        helper.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        let (helper, ended) = watched(i32::try_from(helper.spawn()?.id()).unwrap_or_default())?;
        let deadline = Instant::now() + TIME_LIMIT;
        self.entering.push(Entering { helper, ended, told, client, words: Vec::new(), deadline });
        Ok(None)
    }

    /// What is about to become a command says something, has become one, or has failed.
    pub(super) fn entered(&mut self, helper: Pid) {
        let Some(at) = self.entering.iter().position(|e| e.helper == helper) else { return };
        if !self.entering[at].hear() {
            return;
        }
        let entering = self.entering.swap_remove(at);
        let client = entering.client;
        match read(&entering.words) {
            Told::Failed(why) => self.tell(client, &Answer::failed(why)),
            Told::Began(pid) => match self.child(pid) {
                Ok((pid, ended)) => {
                    self.tell(client, &Answer::Started { pid: pid.as_raw_nonzero().get(), started_at: clock::now() });
                    self.execs.push(Exec { pid, ended, client });
                }
                Err(e) => self.tell(client, &Answer::failed(e)),
            },
        }
    }

    /// Ends those whose time is over.
    pub(super) fn end_late(&mut self) {
        let now = Instant::now();
        for late in self.entering.extract_if(.., |e| e.deadline <= now).collect::<Vec<_>>() {
            let client = late.client;
            late.end();
            self.tell(client, &Answer::failed(format!("the command did not begin within {TIME_LIMIT:?}")));
        }
    }

    /// Ends those whose client is gone.
    pub(super) fn end_of_client(&mut self, client: u64) {
        self.entering.extract_if(.., |e| e.client == client).for_each(Entering::end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_begun_when_it_says_so_and_nothing_else_was_said() {
        for (words, want) in [
            ("pid 7\nbegin\n", Told::Began(7)),
            ("begin\npid 7\n", Told::Began(7)),
            ("begin\npid 7\nexec /x: bad", Told::Failed("exec /x: bad".into())),
            ("exec failed: a\nb", Told::Failed("exec failed: a\nb".into())),
            ("pid 7\n", Told::Failed("exec failed: it ended before it began".into())),
            ("begin\n", Told::Failed("exec failed: it ended before it began".into())),
            ("", Told::Failed("exec failed: it ended before it began".into())),
        ] {
            assert_eq!(read(words.as_bytes()), want, "{words:?}");
        }
    }
}
