//! Pipes and terminals without a thread each.

use std::io;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::termios::Winsize;
use tokio::io::unix::AsyncFd;

/// Bytes at a time.
const PIECE: usize = 32 << 10;

/// A pipe's end or a terminal.
#[derive(Debug)]
pub(super) struct Fd(AsyncFd<OwnedFd>);

impl Fd {
    // tokio deprecates its safe call, as there may be types whose descriptor changes; an `OwnedFd`'s does not.
    #[allow(deprecated)]
    pub(super) fn new(fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self(AsyncFd::new(fd)?))
    }

    /// A second hand on the same thing.
    pub(super) fn again(&self) -> io::Result<Self> {
        Self::new(self.0.get_ref().try_clone()?)
    }

    /// What is there; empty at the end. A terminal whose other side is gone answers EIO.
    pub(super) async fn read(&self) -> io::Result<Bytes> {
        loop {
            let mut ready = self.0.readable().await?;
            let mut piece = vec![0; PIECE];
            match ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut piece)?)) {
                Ok(Ok(count)) => {
                    piece.truncate(count);
                    return Ok(piece.into());
                }
                Ok(Err(e)) if e.raw_os_error() == Some(Errno::IO.raw_os_error()) => return Ok(Bytes::new()),
                Ok(Err(e)) => return Err(e),
                Err(_) => {}
            }
        }
    }

    pub(super) async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut ready = self.0.writable().await?;
            match ready.try_io(|fd| Ok(rustix::io::write(fd.get_ref(), bytes)?)) {
                Ok(Ok(count)) => bytes = &bytes[count..],
                Ok(Err(e)) => return Err(e),
                Err(_) => {}
            }
        }
        Ok(())
    }

    pub(super) fn resize(&self, width: u16, height: u16) -> io::Result<()> {
        let size = Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(rustix::termios::tcsetwinsize(self.0.get_ref(), size)?)
    }
}

/// What a process reads from, and our end.
pub(super) fn input() -> io::Result<(OwnedFd, Fd)> {
    let (theirs, ours) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((theirs, Fd::new(ours)?))
}

/// What a process writes to, and our end.
pub(super) fn output() -> io::Result<(OwnedFd, Fd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((theirs, Fd::new(ours)?))
}
