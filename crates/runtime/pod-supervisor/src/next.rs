//! The process that goes on where `bosun-pod start` and `exec` have done what is to be done on the node's side: a copy of theirs, which becomes the
//! container's first process or a command. And what it goes through before.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use cgroup_fork::{Processes, fork};

use crate::cgroups::{Entrance, Opened};
use crate::helper::{PID, at, say_failed};

/// What is told to it when its number was told.
const KNOWN: &[u8] = b".";

/// Starts it, and tells its number to who waits for it. What goes wrong as it becomes what it is to be is told there, too: `what` failed.
pub(crate) fn go_on(
    what: &str,
    processes: Processes,
    mut told: &UnixStream,
    entrance: Entrance,
    becomes: impl FnOnce(Way<'_>) -> io::Result<Infallible>,
) -> io::Result<()> {
    let mut parts = Some((UnixStream::pair()?, becomes));
    let mut does = |entrance: &Entrance| {
        // The other end is its parent's alone.
        let Some(((_, line), becomes)) = parts.take() else { return };
        let Err(failed) = becomes(Way { entrance, line });
        say_failed(told, what, &failed);
    };
    let begun = entrance.begins_in().map(|folder| {
        let opened = File::open(folder).map_err(at(folder))?;
        fork(Some(opened.into()), processes, || does(&entrance))
    });
    let pid = match begun {
        Some(Ok(pid)) => pid,
        // It has all the processes that it may have, and commands come on top, as with `runc`; somebody keeps that call from us; or else the other way
        // says what is wrong.
        Some(Err(_)) | None => {
            let entrance = entrance.begun_elsewhere();
            fork(None, processes, || does(&entrance))?
        }
    };
    told.write_all(format!("{PID}{}\n", pid.as_raw_nonzero()).as_bytes())?;
    let Some(((mut line, _), _)) = parts else { return Ok(()) };
    line.write_all(KNOWN)
}

/// What it has to go through.
#[derive(Debug)]
pub(crate) struct Way<'a> {
    entrance: &'a Entrance,
    line: UnixStream,
}

impl Way<'_> {
    /// Opens what has names of the node's alone.
    pub(crate) fn open(self) -> io::Result<Gate> {
        Ok(Gate { groups: self.entrance.open()?, line: self.line })
    }
}

/// The last of it.
#[derive(Debug)]
pub(crate) struct Gate {
    groups: Opened,
    line: UnixStream,
}

impl Gate {
    /// Waits until its number was told, and is in its cgroups.
    ///
    /// # Errors
    /// Who started it has ended and told nobody, who would not know of it; the cgroups take nobody.
    pub(crate) fn pass(mut self) -> io::Result<()> {
        self.line.read_exact(&mut [0; KNOWN.len()]).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other("who started it has ended"),
            _ => e,
        })?;
        self.groups.enter()
    }
}
