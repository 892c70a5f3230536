//! Connections of those who command.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};

use crate::fds;
use crate::wire::{Answer, MAX_ANSWER, MAX_FDS, MAX_REQUEST, Request, frame, unframe};

/// Connections at a time. For one more, the oldest goes that has asked for nothing yet; if there is none, the new one is closed.
pub(super) const MAX_CLIENTS: usize = 128;
/// Those of them that may be there for commands and attachments: the rest is kept for stops, starts and whoever follows the pod.
pub(super) const MAX_STREAMS: usize = 96;
/// Those of them that may follow the pod: of more, the oldest goes.
pub(super) const MAX_WATCHERS: usize = 8;

/// A connection: one request, its answers.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) stream: UnixStream,
    incoming: Vec<u8>,
    pub(super) fds: Vec<OwnedFd>,
    /// Its request was taken; what comes now is ignored.
    pub(super) busy: bool,
    /// Is there for a command or an attachment.
    pub(super) streams: bool,
    /// Wants to know of every end.
    pub(super) watches: bool,
}

/// What reading a connection brought.
pub(super) enum Heard {
    /// Nothing whole yet.
    Nothing,
    /// Its request.
    Request(Request),
    /// It ended, or says what cannot be understood.
    Gone,
}

impl Client {
    /// Takes a connection of root; others are closed.
    pub(super) fn accept(listener: &UnixListener) -> io::Result<Option<Self>> {
        let (stream, _) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(e) => return Err(e),
        };
        if !rustix::net::sockopt::socket_peercred(&stream)?.uid.is_root() {
            return Ok(None);
        }
        stream.set_nonblocking(true)?;
        Ok(Some(Self { stream, incoming: Vec::new(), fds: Vec::new(), busy: false, streams: false, watches: false }))
    }

    /// Reads what is there.
    pub(super) fn read(&mut self) -> Heard {
        let mut buffer = [0; 4096];
        loop {
            match fds::receive(&self.stream, &mut buffer, &mut self.fds) {
                Ok(0) => return Heard::Gone,
                // A second request on a connection, or chatter.
                Ok(_) if self.busy => return Heard::Gone,
                Ok(count) => self.incoming.extend_from_slice(&buffer[..count]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Heard::Nothing,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Heard::Gone,
            }
            match unframe(&mut self.incoming, MAX_REQUEST) {
                Ok(None) => {}
                Ok(Some(request)) => {
                    self.busy = true;
                    self.incoming = Vec::new();
                    self.fds.truncate(MAX_FDS);
                    return Heard::Request(request);
                }
                Err(_) => return Heard::Gone,
            }
        }
    }

    /// Sends an answer. Whoever does not read its few hundred bytes is cut.
    pub(super) fn tell(&mut self, answer: &Answer) -> bool {
        let too_long = |_| frame(&Answer::failed("the answer is too long"), MAX_ANSWER);
        let Ok(bytes) = frame(answer, MAX_ANSWER).or_else(too_long) else { return false };
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match fds::send(&self.stream, rest, &[]) {
                Ok(count) => rest = &rest[count..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}
