//! A unix socket that wakes its owner when there is something to read, and not each time the peer has read something.
//!
//! The kernel reports a unix stream as writable after every read of the peer's. A stream that is registered for both
//! directions is woken by that for nothing, once or twice per call.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// A connected socket. Registered for writing only while the kernel's buffer is full.
pub(crate) struct Socket {
    stream: AsyncFd<UnixStream>,
    /// A second descriptor of the same socket, while a write waits.
    full: Option<AsyncFd<UnixStream>>,
}

impl Socket {
    pub(crate) async fn connect(path: &Path) -> io::Result<Self> {
        // Non-blocking from here on.
        let stream = tokio::net::UnixStream::connect(path).await?.into_std()?;
        Self::of(stream)
    }

    fn of(stream: UnixStream) -> io::Result<Self> {
        Ok(Self { stream: registered(stream, Interest::READABLE)?, full: None })
    }

    /// Runs `write` now, or as soon as there is room.
    fn poll_write_with(
        &mut self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&UnixStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if let Some(full) = &self.full {
                let mut room = ready!(full.poll_write_ready(cx))?;
                if let Ok(done) = room.try_io(|stream| write(stream.get_ref())) {
                    self.full = None;
                    return Poll::Ready(done);
                }
            } else {
                match write(self.stream.get_ref()) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                        let again = self.stream.get_ref().try_clone()?;
                        self.full = Some(registered(again, Interest::WRITABLE)?);
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    done => return Poll::Ready(done),
                }
            }
        }
    }
}

#[expect(
    deprecated,
    reason = "a UnixStream keeps its descriptor open, which is all that the unsafe successor asks for"
)]
fn registered(stream: UnixStream, interest: Interest) -> io::Result<AsyncFd<UnixStream>> {
    AsyncFd::with_interest(stream, interest)
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut filled = ready!(self.stream.poll_read_ready(cx))?;
            let room = buf.initialize_unfilled();
            let wanted = room.len();
            let Ok(read) = filled.try_io(|stream| stream.get_ref().read(room)) else { continue };
            let read = read?;
            // Less than there was room for: the socket is empty, and the next arrival is told by the kernel.
            if 0 < read && read < wanted {
                filled.clear_ready();
            }
            buf.advance(read);
            return Poll::Ready(Ok(()));
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write_with(cx, |mut stream| stream.write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write_with(cx, |mut stream| stream.write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.stream.get_ref().shutdown(Shutdown::Write) {
            Err(e) if e.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(e)),
            _ => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::Socket;

    fn pair() -> (Socket, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (Socket::of(ours).unwrap(), theirs)
    }

    #[tokio::test]
    async fn more_than_the_kernel_holds_is_written_when_the_peer_reads() {
        let (mut ours, mut theirs) = pair();
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).unwrap();
            all
        });
        let sent: Vec<u8> = (0..8 << 20).map(|n: u32| n.to_le_bytes()[1]).collect();
        ours.write_all(&sent).await.unwrap();
        assert!(ours.full.is_none(), "nothing waits any more");
        ours.shutdown().await.unwrap();
        assert_eq!(reader.join().unwrap(), sent);
    }

    #[tokio::test]
    async fn what_comes_in_pieces_is_read_and_an_end_is_an_end() {
        let (mut ours, theirs) = pair();
        let (mut theirs, mut got) = (
            tokio::net::UnixStream::from_std({
                theirs.set_nonblocking(true).unwrap();
                theirs
            })
            .unwrap(),
            Vec::new(),
        );
        for piece in [&b"one"[..], b"two", &[7; 5000]] {
            theirs.write_all(piece).await.unwrap();
            let mut buf = vec![0; piece.len()];
            ours.read_exact(&mut buf).await.unwrap();
            got.extend(buf);
        }
        assert_eq!(got.len(), 5006);
        drop(theirs);
        assert_eq!(ours.read(&mut [0; 8]).await.unwrap(), 0);
    }
}
