//! WebSocket (RFC 6455) as a stream of bytes: no message is ever held whole, however long a peer makes it.
//!
//! A library that hands out messages must hold them: an authorised client could fill the node's memory with a few of the
//! permitted 32 MiB. Here a message comes in pieces, as its bytes do.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::handlers::{Refusal, refuse};

/// Largest message that a peer may send: what API servers take, too.
const MAX_MESSAGE: u64 = 32 << 20;
/// Bytes that are read at once, and the longest piece.
const READ: usize = 32 << 10;
/// Longest payload of a control frame (RFC 6455, 5.5).
const MAX_CONTROL: usize = 125;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// Which end this is: clients mask what they send, and servers do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Server,
    Client,
}

/// Both halves of a connection that has switched.
pub(crate) fn socket<T: AsyncRead + AsyncWrite>(io: T, role: Role) -> (Sink<T>, Source<T>) {
    let (read, write) = tokio::io::split(io);
    let pongs = Arc::new(Pongs::default());
    let sink = Sink { io: write, role, out: BytesMut::new(), pongs: Arc::clone(&pongs) };
    let source = Source {
        io: read,
        role,
        buffer: BytesMut::new(),
        frame: None,
        in_message: false,
        first: true,
        length: 0,
        pongs,
    };
    (sink, source)
}

/// The newest ping that is not answered. Older ones need no answer of their own (RFC 6455, 5.5.3).
#[derive(Debug, Default)]
struct Pongs {
    due: Mutex<Option<Bytes>>,
    wake: Notify,
}

/// A part of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The message begins with it.
    pub(crate) first: bool,
    /// The message ends with it. Not told by a piece when the end comes as a frame without bytes.
    pub(crate) last: bool,
    /// Never empty.
    pub(crate) bytes: Bytes,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    left: u64,
    fin: bool,
    mask: [u8; 4],
}

/// The peer broke off, or the protocol.
#[derive(Debug)]
struct Broken;

/// The half that receives.
#[derive(Debug)]
pub(crate) struct Source<T> {
    io: ReadHalf<T>,
    role: Role,
    buffer: BytesMut,
    /// The data frame whose bytes come.
    frame: Option<Frame>,
    in_message: bool,
    /// No byte of the message was handed out.
    first: bool,
    /// Bytes of the message so far.
    length: u64,
    pongs: Arc<Pongs>,
}

impl<T: AsyncRead> Source<T> {
    /// The next bytes; `None` when the peer closed or broke off. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Piece> {
        loop {
            match &mut self.frame {
                Some(frame) if frame.left > 0 => {
                    if self.buffer.is_empty() {
                        self.fill().await.ok()?;
                        continue;
                    }
                    let len = usize::try_from(frame.left).unwrap_or(usize::MAX).min(self.buffer.len()).min(READ);
                    let mut bytes = self.buffer.split_to(len);
                    frame.left -= len as u64;
                    apply(&mut frame.mask, &mut bytes);
                    let last = frame.fin && frame.left == 0;
                    let first = std::mem::take(&mut self.first);
                    return Some(Piece { first, last, bytes: bytes.freeze() });
                }
                Some(frame) => {
                    self.in_message = !frame.fin;
                    self.frame = None;
                }
                None => self.head().await.ok().flatten()?,
            }
        }
    }

    /// Returns when the peer has broken off, as far as this shows while few bytes wait to be read. Cancel-safe.
    pub(crate) async fn gone(&mut self) {
        while self.buffer.len() < READ {
            if self.fill().await.is_err() {
                return;
            }
        }
        std::future::pending().await
    }

    /// Reads the head of a frame, and all of a control frame. `None`: the peer closes.
    async fn head(&mut self) -> Result<Option<()>, Broken> {
        let (code, fin, frame, len) = loop {
            match head(&self.buffer, self.role)? {
                Some(head) => break head,
                None => self.fill().await?,
            }
        };
        if code >= CLOSE {
            let whole = len + usize::try_from(frame.left).map_err(|_| Broken)?;
            while self.buffer.len() < whole {
                self.fill().await?;
            }
            let mut payload = self.buffer.split_to(whole).split_off(len);
            let mut mask = frame.mask;
            apply(&mut mask, &mut payload);
            match code {
                CLOSE => return Ok(None),
                PING => {
                    *self.pongs.due.lock().unwrap_or_else(PoisonError::into_inner) =
                        Some(Bytes::copy_from_slice(&payload));
                    self.pongs.wake.notify_one();
                }
                _ => {}
            }
            return Ok(Some(()));
        }
        if (code == CONTINUATION) != self.in_message {
            return Err(Broken);
        }
        if code != CONTINUATION {
            (self.first, self.length) = (true, 0);
        }
        self.length = self.length.saturating_add(frame.left);
        if self.length > MAX_MESSAGE {
            return Err(Broken);
        }
        self.buffer.advance(len);
        self.in_message = true;
        self.frame = Some(Frame { fin, ..frame });
        Ok(Some(()))
    }

    async fn fill(&mut self) -> Result<(), Broken> {
        if self.buffer.len() == self.buffer.capacity() {
            self.buffer.reserve(READ);
        }
        match self.io.read_buf(&mut self.buffer).await {
            Ok(1..) => Ok(()),
            Ok(0) | Err(_) => Err(Broken),
        }
    }
}

/// The head of a frame: its code, whether it is the last of its message, the frame, and the head's own length. `None`: more
/// bytes are needed.
fn head(bytes: &[u8], role: Role) -> Result<Option<(u8, bool, Frame, usize)>, Broken> {
    let [one, two, rest @ ..] = bytes else { return Ok(None) };
    let (fin, code, masked) = (one & 0x80 != 0, one & 0x0f, two & 0x80 != 0);
    let known = matches!(code, CONTINUATION | TEXT | BINARY | CLOSE | PING | PONG);
    if one & 0x70 != 0 || !known || masked != (role == Role::Server) {
        return Err(Broken);
    }
    let extended = match two & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let Some((length, rest)) = rest.split_at_checked(extended) else { return Ok(None) };
    let left = match extended {
        0 => u64::from(two & 0x7f),
        _ => length.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    };
    if left > MAX_MESSAGE || (code >= CLOSE && (!fin || left > MAX_CONTROL as u64)) {
        return Err(Broken);
    }
    let mut mask = [0; 4];
    if masked {
        let Some(four) = rest.first_chunk() else { return Ok(None) };
        mask = *four;
    }
    let len = 2 + extended + if masked { 4 } else { 0 };
    Ok(Some((code, fin, Frame { left, fin, mask }, len)))
}

/// Masks or unmasks, and turns the mask to where the next byte needs it.
fn apply(mask: &mut [u8; 4], bytes: &mut [u8]) {
    if *mask == [0; 4] {
        return;
    }
    for chunk in bytes.chunks_mut(4) {
        for (byte, key) in chunk.iter_mut().zip(*mask) {
            *byte ^= key;
        }
    }
    mask.rotate_left(bytes.len() % 4);
}

/// The half that sends.
#[derive(Debug)]
pub(crate) struct Sink<T> {
    io: WriteHalf<T>,
    role: Role,
    /// What the transport has not taken.
    out: BytesMut,
    pongs: Arc<Pongs>,
}

impl<T: AsyncWrite> Sink<T> {
    /// Sends one binary message of two parts, and waits until the transport has it. Dropping the future in the middle loses
    /// nothing: the next call sends the rest first.
    pub(crate) async fn send(&mut self, head: &[u8], bytes: &[u8]) -> Result<(), ()> {
        self.put(BINARY, head, bytes);
        self.flush().await
    }

    /// Asks the peer whether it lives.
    pub(crate) async fn ping(&mut self) -> Result<(), ()> {
        self.put(PING, &[], &[]);
        self.flush().await
    }

    /// Says that nothing more comes.
    pub(crate) async fn close(&mut self) -> Result<(), ()> {
        self.put(CLOSE, &[], &[]);
        self.flush().await
    }

    /// Returns when the peer waits for an answer to its ping: [`Self::flush`] sends it. Cancel-safe.
    pub(crate) fn pinged(&self) -> impl Future<Output = ()> + use<T> {
        let pongs = Arc::clone(&self.pongs);
        async move { pongs.wake.notified().await }
    }

    /// Sends what is due.
    pub(crate) async fn flush(&mut self) -> Result<(), ()> {
        let pong = self.pongs.due.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(pong) = pong {
            self.put(PONG, &[], &pong);
        }
        while !self.out.is_empty() {
            if self.io.write_buf(&mut self.out).await.map_err(drop)? == 0 {
                return Err(());
            }
        }
        self.io.flush().await.map_err(drop)
    }

    fn put(&mut self, code: u8, head: &[u8], bytes: &[u8]) {
        let masked = if self.role == Role::Client { 0x80 } else { 0 };
        let len = head.len() + bytes.len();
        self.out.reserve(14 + len);
        self.out.put_u8(0x80 | code);
        match (u8::try_from(len), u16::try_from(len)) {
            (Ok(short @ ..=125), _) => self.out.put_u8(masked | short),
            (_, Ok(middle)) => {
                self.out.put_u8(masked | 126);
                self.out.put_u16(middle);
            }
            _ => {
                self.out.put_u8(masked | 127);
                self.out.put_u64(len as u64);
            }
        }
        let mut mask = [0; 4];
        if self.role == Role::Client {
            mask = fastrand::u32(..).to_be_bytes();
            self.out.put_slice(&mask);
        }
        let start = self.out.len();
        self.out.put_slice(head);
        self.out.put_slice(bytes);
        apply(&mut mask, &mut self.out[start..]);
    }
}

/// The 101 for a client's offer.
///
/// # Errors
/// The 400 for a request that is no WebSocket handshake.
pub(crate) fn accept(headers: &HeaderMap, protocol: Option<&str>) -> Result<Response, Refusal> {
    let bad = |why: &str| refuse(StatusCode::BAD_REQUEST, format!("unable to upgrade: {why}\n"));
    let version = headers.get(header::SEC_WEBSOCKET_VERSION).map(HeaderValue::as_bytes);
    if version != Some(b"13") {
        return Err(bad("websocket version 13 is required"));
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).filter(|k| k.len() == 24);
    let key = key.ok_or_else(|| bad("websocket key is missing"))?;
    let accepted = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).map_err(|_| bad("websocket key"))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answer = response.headers_mut();
    answer.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(header::SEC_WEBSOCKET_ACCEPT, accepted);
    if let Some(protocol) = protocol {
        let value = HeaderValue::from_str(protocol).map_err(|_| bad("subprotocol"))?;
        answer.insert(header::SEC_WEBSOCKET_PROTOCOL, value);
    }
    Ok(response)
}

#[cfg(test)]
mod tests;
