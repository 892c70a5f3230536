//! The process that goes on where `bosun-pod start` and `exec` have done what is to be done on the node's side, and becomes the container's first process
//! or a command: how it is started, and what it goes through before.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use cgroup_fork::{Processes, spawn_in};
use rustix::process::Pid;
use rustix::thread::UnshareFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cgroups::{Entrance, Opened};
use crate::helper::{PID, at, order, receive_more, say_failed, start, told_by};
use crate::hold;

/// What is told to it when its number was told.
const KNOWN: &[u8] = b".";

/// Such a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    /// The word that this program is started with.
    pub(crate) verb: &'static str,
    /// What it is in the words for what went wrong.
    pub(crate) what: &'static str,
    /// Whether a PID namespace begins with it.
    pub(crate) processes: Processes,
}

/// Starts it with a message and descriptors, and tells its number to who waits for it.
pub(crate) fn go_on<T: Serialize>(
    next: Next,
    message: &T,
    passed: &[&OwnedFd],
    mut told: &UnixStream,
    terminal: Option<&OwnedFd>,
    entrance: Entrance,
) -> io::Result<()> {
    let passed: Vec<BorrowedFd<'_>> =
        passed.iter().map(AsFd::as_fd).chain([told.as_fd()]).chain(terminal.map(AsFd::as_fd)).collect();
    let begun = entrance.begins_in().map(|folder| begin_in(folder, next, &(message, &entrance), &passed, told));
    let (pid, mut line) = match begun {
        Some(Ok(begun)) => begun,
        // It has all the processes that it may have, and commands come on top, as with `runc`; somebody keeps that call from us; or else the other way
        // says what is wrong.
        Some(Err(_)) | None => {
            if next.processes == Processes::Own {
                // For children.
                hold::leave(UnshareFlags::NEWPID)?;
            }
            start(next.verb, &(message, entrance.begun_elsewhere()), &passed)?
        }
    };
    told.write_all(format!("{PID}{}\n", pid.as_raw_nonzero()).as_bytes())?;
    match line.write_all(KNOWN) {
        // It has ended, and said why.
        Err(e) if [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset].contains(&e.kind()) => Ok(()),
        other => other,
    }
}

/// As [`start`], in a cgroup of version 2 from its beginning.
fn begin_in<T: Serialize>(
    folder: &Path,
    next: Next,
    message: &T,
    passed: &[BorrowedFd<'_>],
    told: &UnixStream,
) -> io::Result<(Pid, UnixStream)> {
    let (mut call, line) = order(next.verb, message, passed)?;
    let folder = File::open(folder).map_err(at(folder))?;
    let pid = spawn_in(folder, next.processes, &mut call, |failed| say_failed(told, next.what, failed))?;
    Ok((pid, line))
}

/// The message for it, with its descriptors, and the way that is before it.
pub(crate) fn receive_next<T: DeserializeOwned>() -> io::Result<(T, Vec<OwnedFd>, Way)> {
    let line = told_by()?;
    let ((message, entrance), passed, said): ((T, Entrance), _, _) = receive_more(&line)?;
    Ok((message, passed, Way { entrance, line, said }))
}

/// What it has to go through.
#[derive(Debug)]
pub(crate) struct Way {
    entrance: Entrance,
    line: UnixStream,
    /// What was said after the message.
    said: Vec<u8>,
}

impl Way {
    /// Opens what has names of the node's alone.
    pub(crate) fn open(self) -> io::Result<Gate> {
        Ok(Gate { groups: self.entrance.open()?, line: self.line, said: self.said })
    }
}

/// The last of it.
#[derive(Debug)]
pub(crate) struct Gate {
    groups: Opened,
    line: UnixStream,
    said: Vec<u8>,
}

impl Gate {
    /// Waits until its number was told, and is in its cgroups. If nobody told it, nobody would know of it, and it ends: who waits sees that, too.
    pub(crate) fn pass(mut self) -> io::Result<()> {
        if !self.said.starts_with(KNOWN) {
            match self.line.read_exact(&mut [0; KNOWN.len()]) {
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => std::process::exit(1),
                other => other?,
            }
        }
        self.groups.enter()
    }
}
