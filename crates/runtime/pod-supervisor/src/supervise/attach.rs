//! Who is attached to a container: copies of its output, a source of its input.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

/// Bytes of input at a time.
const PIECE: usize = 4096;
/// Output that may wait for a slow reader. One that lags further is cut, as neither the container nor its log waits for it.
const PIPE: usize = 1 << 20;

/// One who is attached.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) client: u64,
    /// Where its input comes from.
    pub(super) input: Option<OwnedFd>,
    /// Input that the container has not taken yet.
    pub(super) pending: Vec<u8>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

/// What became of moving input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// More may come.
    On,
    /// There is no more.
    Ended,
}

impl Attached {
    pub(super) fn new(
        client: u64,
        input: Option<OwnedFd>,
        stdout: Option<OwnedFd>,
        stderr: Option<OwnedFd>,
    ) -> rustix::io::Result<Self> {
        for fd in [&input, &stdout, &stderr].into_iter().flatten() {
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        for fd in [&stdout, &stderr].into_iter().flatten() {
            // A socket has a buffer of its own, and refuses.
            let _ = rustix::pipe::fcntl_setpipe_size(fd, PIPE);
        }
        Ok(Self { client, input, pending: Vec::new(), stdout, stderr })
    }

    /// Copies a piece of output. `false`: this one is done with.
    pub(super) fn copy(&mut self, piece: &[u8], error: bool) -> bool {
        let slot = if error { &mut self.stderr } else { &mut self.stdout };
        if let Some(fd) = slot.as_ref() {
            let sent = loop {
                match rustix::io::write(fd, piece) {
                    Err(Errno::INTR) => {}
                    other => break other,
                }
            };
            if sent != Ok(piece.len()) {
                *slot = None;
            }
        }
        self.input.is_some() || self.stdout.is_some() || self.stderr.is_some()
    }

    /// Moves input from its source to the container.
    pub(super) fn feed(&mut self, to: &OwnedFd) -> Moved {
        loop {
            while !self.pending.is_empty() {
                match rustix::io::write(to, &self.pending) {
                    Ok(count) => drop(self.pending.drain(..count)),
                    Err(Errno::AGAIN) => return Moved::On,
                    Err(Errno::INTR) => {}
                    // The container has closed its input.
                    Err(_) => return Moved::Ended,
                }
            }
            let Some(from) = &self.input else { return Moved::Ended };
            let mut buffer = [0; PIECE];
            match rustix::io::read(from, &mut buffer) {
                Ok(count) if count > 0 => self.pending.extend_from_slice(&buffer[..count]),
                Err(Errno::AGAIN) => return Moved::On,
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return Moved::Ended,
            }
        }
    }
}
