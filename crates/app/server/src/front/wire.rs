//! A socket that can be ended from elsewhere, and tells when it hears something.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::places::Place;

/// The socket with its place: the place is free when the last owner of the socket lets go of it, upgraded streams included.
#[derive(Debug)]
pub(super) struct Wire {
    socket: TcpStream,
    place: Place,
}

impl Wire {
    pub(super) fn new(socket: TcpStream, place: Place) -> Self {
        Self { socket, place }
    }

    fn ended() -> io::Error {
        io::Error::new(io::ErrorKind::ConnectionAborted, "ended by the server")
    }

    fn may_write(&self, cx: &Context<'_>) -> io::Result<()> {
        self.place.conn.writer.register(cx.waker());
        if self.place.conn.is_closed() { Err(Self::ended()) } else { Ok(()) }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.place.conn.reader.register(cx.waker());
        if self.place.conn.is_closed() {
            return Poll::Ready(Err(Self::ended()));
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.socket).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.place.conn.heard();
        }
        polled
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.may_write(cx)?;
        let polled = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.place.conn.sent(polled.is_ready());
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.may_write(cx)?;
        let polled = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        self.place.conn.sent(polled.is_ready());
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.may_write(cx)?;
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
