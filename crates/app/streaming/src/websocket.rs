//! WebSocket (RFC 6455) as a stream of bytes: no message is ever held whole, however long a peer makes it.
//!
//! Handshake and heads of frames are tungstenite's, buffers are tokio-util's. Messages, which libraries hand out whole, are
//! taken apart here (`docs/decisions/0010-websocket-in-pieces.md`).

use std::collections::VecDeque;
use std::io::{self, Cursor, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::stream::Fuse;
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
pub(crate) use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};
use tokio_util::codec::{Decoder, Encoder, FramedRead, FramedWrite};

use crate::refusal::{Refusal, refuse};

/// Largest message that a peer may send: what API servers take, too.
const MAX_MESSAGE: u64 = 32 << 20;
/// Bytes that are read at once, and the longest fragment.
const READ: usize = 32 << 10;
/// Fragments that are kept while nobody wants them.
const KEPT: usize = 64;
/// Longest payload of a control frame (RFC 6455, 5.5).
const MAX_CONTROL: u64 = 125;

/// Both halves of a connection that has switched.
pub(crate) fn socket<T: AsyncRead + AsyncWrite>(io: T, role: Role) -> (Sink<T>, Source<T>) {
    let (read, write) = tokio::io::split(io);
    let pongs = Arc::new(Pongs::default());
    let incoming = Incoming { role, frame: None, in_message: false, first: true, length: 0, pongs: Arc::clone(&pongs) };
    let fragments = FramedRead::with_capacity(read, incoming, READ).fuse();
    (Sink { frames: FramedWrite::new(write, Outgoing(role)), pongs }, Source { fragments, kept: VecDeque::new() })
}

/// The newest ping that is not answered. Older ones need no answer of their own (RFC 6455, 5.5.3).
#[derive(Debug, Default)]
struct Pongs {
    due: Mutex<Option<Bytes>>,
    wake: Notify,
}

/// A part of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// The message begins with it.
    pub(crate) first: bool,
    /// The message ends with it. Not told by a fragment when the end comes as a frame without bytes.
    pub(crate) last: bool,
    /// Never empty.
    pub(crate) bytes: Bytes,
}

/// The half that receives.
#[derive(Debug)]
pub(crate) struct Source<T> {
    fragments: Fuse<FramedRead<ReadHalf<T>, Incoming>>,
    /// Came while nobody wanted it.
    kept: VecDeque<Fragment>,
}

impl<T: AsyncRead> Source<T> {
    /// The next bytes; `None` when the peer closed or broke off. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Fragment> {
        match self.kept.pop_front() {
            Some(fragment) => Some(fragment),
            None => self.fragments.next().await?.ok(),
        }
    }

    /// Returns when the peer has broken off, as far as this shows while few bytes wait to be read. Cancel-safe.
    pub(crate) async fn gone(&mut self) {
        while self.kept.len() < KEPT && self.kept.iter().map(|fragment| fragment.bytes.len()).sum::<usize>() < READ {
            match self.fragments.next().await {
                Some(Ok(fragment)) => self.kept.push_back(fragment),
                _ => return,
            }
        }
        std::future::pending().await
    }
}

/// A data frame whose bytes come.
#[derive(Debug)]
struct Frame {
    left: u64,
    fin: bool,
    mask: [u8; 4],
}

/// Takes apart what the peer sends. Its error is the end, orderly or not.
#[derive(Debug)]
struct Incoming {
    role: Role,
    frame: Option<Frame>,
    /// A message has begun and its last frame has not come.
    in_message: bool,
    /// No byte of the message was handed out.
    first: bool,
    /// Bytes of the message so far.
    length: u64,
    pongs: Arc<Pongs>,
}

impl Incoming {
    /// Reads the head of a data frame, or all of a control frame. False: more bytes are needed.
    fn head(&mut self, buffer: &mut BytesMut) -> io::Result<bool> {
        let mut cursor = Cursor::new(&buffer[..]);
        let Some((header, left)) = FrameHeader::parse(&mut cursor).map_err(io::Error::other)? else {
            return Ok(false);
        };
        let head = usize::try_from(cursor.position()).map_err(io::Error::other)?;
        let before = if self.in_message { self.length } else { 0 };
        let fits = match header.opcode {
            OpCode::Control(_) => header.is_final && left <= MAX_CONTROL,
            OpCode::Data(data) => {
                (data == Data::Continue) == self.in_message && left.saturating_add(before) <= MAX_MESSAGE
            }
        };
        let masked = header.mask.is_some() == (self.role == Role::Server);
        if header.rsv1 || header.rsv2 || header.rsv3 || !masked || !fits {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut frame = Frame { left, fin: header.is_final, mask: header.mask.unwrap_or_default() };
        match header.opcode {
            OpCode::Data(_) => {
                buffer.advance(head);
                self.first |= !self.in_message;
                (self.in_message, self.length, self.frame) = (true, before + left, Some(frame));
            }
            OpCode::Control(control) => {
                let whole = head + usize::try_from(left).map_err(io::Error::other)?;
                if buffer.len() < whole {
                    return Ok(false);
                }
                let mut payload = buffer.split_to(whole).split_off(head);
                apply(&mut frame.mask, &mut payload);
                match control {
                    Control::Close => return Err(ErrorKind::ConnectionAborted.into()),
                    Control::Ping => {
                        *self.pongs.due.lock().unwrap_or_else(PoisonError::into_inner) = Some(payload.freeze());
                        self.pongs.wake.notify_one();
                    }
                    Control::Pong | Control::Reserved(_) => {}
                }
            }
        }
        Ok(true)
    }
}

impl Decoder for Incoming {
    type Item = Fragment;
    type Error = io::Error;

    fn decode(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Fragment>> {
        loop {
            let Some(frame) = &mut self.frame else {
                if self.head(buffer)? {
                    continue;
                }
                return Ok(None);
            };
            let len = usize::try_from(frame.left).unwrap_or(usize::MAX).min(buffer.len());
            frame.left -= len as u64;
            let mut bytes = buffer.split_to(len);
            apply(&mut frame.mask, &mut bytes);
            let (over, last) = (frame.left == 0, frame.left == 0 && frame.fin);
            if over {
                (self.in_message, self.frame) = (!last, None);
            }
            if len > 0 {
                return Ok(Some(Fragment { first: std::mem::take(&mut self.first), last, bytes: bytes.freeze() }));
            }
            if !over {
                return Ok(None);
            }
        }
    }
}

/// Code of a close after which nothing is missing (RFC 6455 7.4.1).
const NORMAL: [u8; 2] = 1000_u16.to_be_bytes();

/// The half that sends.
#[derive(Debug)]
pub(crate) struct Sink<T> {
    frames: FramedWrite<WriteHalf<T>, Outgoing>,
    pongs: Arc<Pongs>,
}

impl<T: AsyncWrite> Sink<T> {
    /// Sends one binary message of two parts, and waits until the transport has it. Dropping the future in the middle cuts no
    /// message: the next call sends the rest first.
    pub(crate) async fn send(&mut self, head: &[u8], bytes: &[u8]) -> Result<(), ()> {
        self.put((OpCode::Data(Data::Binary), [head, bytes])).await
    }

    /// Asks the peer whether it lives.
    pub(crate) async fn ping(&mut self) -> Result<(), ()> {
        self.put((OpCode::Control(Control::Ping), [&[], &[]])).await
    }

    /// Says that nothing more comes, and that this is as it should be: a close without a code is an error to kubectl.
    pub(crate) async fn close(&mut self) -> Result<(), ()> {
        self.put((OpCode::Control(Control::Close), [&NORMAL, &[]])).await
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
            self.frames.feed((OpCode::Control(Control::Pong), [&pong, &[]])).await.map_err(drop)?;
        }
        SinkExt::<OutFrame<'_>>::flush(&mut self.frames).await.map_err(drop)
    }

    async fn put(&mut self, frame: OutFrame<'_>) -> Result<(), ()> {
        self.frames.feed(frame).await.map_err(drop)?;
        self.flush().await
    }
}

/// A frame of ours that is a whole message: its code, and its payload in two parts.
type OutFrame<'a> = (OpCode, [&'a [u8]; 2]);

/// Writes what we send: clients mask it, and servers do not.
#[derive(Debug)]
struct Outgoing(Role);

impl Encoder<OutFrame<'_>> for Outgoing {
    type Error = io::Error;

    fn encode(&mut self, (opcode, parts): OutFrame<'_>, out: &mut BytesMut) -> io::Result<()> {
        let length = parts[0].len() + parts[1].len();
        let mut mask = (self.0 == Role::Client).then(|| fastrand::u32(..).to_be_bytes());
        let header = FrameHeader { opcode, mask, ..FrameHeader::default() };
        out.reserve(header.len(length as u64) + length);
        header.format(length as u64, &mut out.writer()).map_err(io::Error::other)?;
        let start = out.len();
        out.put_slice(parts[0]);
        out.put_slice(parts[1]);
        if let Some(mask) = &mut mask {
            apply(mask, &mut out[start..]);
        }
        Ok(())
    }
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

/// The 101 for a client's offer.
///
/// # Errors
/// The 400 for a request that is no WebSocket handshake.
pub(crate) fn accept(request: &Request, protocol: Option<&str>) -> Result<Response, Refusal> {
    let bad = |why: String| refuse(StatusCode::BAD_REQUEST, format!("unable to upgrade: {why}\n"));
    let mut response = create_response_with_body(request, Body::empty).map_err(|e| bad(e.to_string()))?;
    if let Some(protocol) = protocol {
        let value = HeaderValue::from_str(protocol).map_err(|e| bad(e.to_string()))?;
        response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, value);
    }
    Ok(response)
}

#[cfg(test)]
mod tests;
