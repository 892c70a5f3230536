//! Frames, from and to bytes. Pure: no I/O, no state, fit to be fed with garbage.

use bytes::{BufMut, BytesMut};
use thiserror::Error;

/// Bytes of a frame's head.
pub const HEAD: usize = 8;
/// Longest control frame that is accepted. Header blocks of streams hold some hundred bytes.
pub const MAX_CONTROL: usize = 64 << 10;
/// Longest payload of a data frame that the format can express.
pub const MAX_DATA: usize = (1 << 24) - 1;

const VERSION: u16 = 3;
const FIN: u8 = 1;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const SETTINGS: u16 = 4;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;
const WINDOW_UPDATE: u16 = 9;

/// The status of a RST_STREAM by which a side says that it wants no more of a stream.
pub const CANCEL: u32 = 5;
/// The status of a RST_STREAM that refuses a stream.
pub const REFUSED: u32 = 3;

/// Why bytes are no frame of SPDY/3.1. The connection cannot go on after any of these.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// Another version of the protocol, or another protocol.
    #[error("control frame of version {0}")]
    Version(u16),
    /// A type that this version does not have.
    #[error("control frame of unknown type {0}")]
    Type(u16),
    /// More than [`MAX_CONTROL`].
    #[error("control frame of {0} bytes")]
    TooLong(usize),
    /// Its fields need more or fewer bytes than it has.
    #[error("control frame of type {0} with a wrong length")]
    Length(u16),
    /// Stream 0, or ping 0.
    #[error("frame for stream 0")]
    StreamZero,
}

/// The first [`HEAD`] bytes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// Payload of a stream follows.
    Data {
        /// The stream; never 0.
        stream: u32,
        /// The sender's last frame on it.
        fin: bool,
        /// Bytes that follow.
        len: usize,
    },
    /// A control frame's fields follow.
    Control {
        /// Its type.
        kind: u16,
        /// Its flags.
        flags: u8,
        /// Bytes that follow; at most [`MAX_CONTROL`].
        len: usize,
    },
}

/// Reads a frame's head.
///
/// # Errors
/// When no frame of ours starts so.
pub fn head(bytes: [u8; HEAD]) -> Result<Head, FrameError> {
    let first = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let flags = bytes[4];
    let len = usize::from(bytes[5]) << 16 | usize::from(bytes[6]) << 8 | usize::from(bytes[7]);
    if first & 0x8000_0000 == 0 {
        if first == 0 {
            return Err(FrameError::StreamZero);
        }
        return Ok(Head::Data { stream: first, fin: flags & FIN != 0, len });
    }
    let version = u16::from_be_bytes([bytes[0] & 0x7f, bytes[1]]);
    let kind = u16::from_be_bytes([bytes[2], bytes[3]]);
    if version != VERSION {
        return Err(FrameError::Version(version));
    }
    if !(SYN_STREAM..=WINDOW_UPDATE).contains(&kind) || kind == 5 {
        return Err(FrameError::Type(kind));
    }
    if len > MAX_CONTROL {
        return Err(FrameError::TooLong(len));
    }
    Ok(Head::Control { kind, flags, len })
}

/// A control frame. Header blocks are still compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control<'a> {
    /// Opens a stream.
    SynStream {
        /// Its number.
        stream: u32,
        /// The opener sends nothing on it.
        fin: bool,
        /// Compressed header block.
        block: &'a [u8],
    },
    /// Accepts a stream.
    SynReply {
        /// Its number.
        stream: u32,
        /// The accepter sends nothing on it.
        fin: bool,
        /// Compressed header block.
        block: &'a [u8],
    },
    /// Ends a stream in both directions.
    Reset {
        /// Its number.
        stream: u32,
        /// Why.
        status: u32,
    },
    /// Settings; none of them concerns us.
    Settings,
    /// A ping or the answer to one: the same frame with the asker's number.
    Ping(u32),
    /// The sender accepts no more streams.
    GoAway {
        /// The last stream that it accepted.
        last: u32,
    },
    /// More headers of a stream; their block counts for the compression state.
    Headers {
        /// Its number.
        stream: u32,
        /// The sender's last frame on it.
        fin: bool,
        /// Compressed header block.
        block: &'a [u8],
    },
    /// Room in a window that nobody keeps.
    WindowUpdate,
}

/// Reads the fields of a control frame; `payload` is what followed its head, whole.
///
/// # Errors
/// When they do not fit the type.
pub fn control(kind: u16, flags: u8, payload: &[u8]) -> Result<Control<'_>, FrameError> {
    let number = |at: usize| -> Result<u32, FrameError> {
        let four = payload.get(at..at + 4).ok_or(FrameError::Length(kind))?;
        Ok(u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
    };
    let stream = || match number(0)? & 0x7fff_ffff {
        0 => Err(FrameError::StreamZero),
        id => Ok(id),
    };
    let exactly = |len: usize| if payload.len() == len { Ok(()) } else { Err(FrameError::Length(kind)) };
    let fin = flags & FIN != 0;
    Ok(match kind {
        SYN_STREAM => {
            let block = payload.get(10..).ok_or(FrameError::Length(kind))?;
            Control::SynStream { stream: stream()?, fin, block }
        }
        SYN_REPLY => Control::SynReply { stream: stream()?, fin, block: &payload[4.min(payload.len())..] },
        HEADERS => Control::Headers { stream: stream()?, fin, block: &payload[4.min(payload.len())..] },
        RST_STREAM => {
            exactly(8)?;
            Control::Reset { stream: stream()?, status: number(4)? }
        }
        SETTINGS => Control::Settings,
        PING => {
            exactly(4)?;
            match number(0)? {
                0 => return Err(FrameError::StreamZero),
                id => Control::Ping(id),
            }
        }
        GOAWAY => {
            exactly(8)?;
            Control::GoAway { last: number(0)? & 0x7fff_ffff }
        }
        WINDOW_UPDATE => {
            exactly(8)?;
            Control::WindowUpdate
        }
        other => return Err(FrameError::Type(other)),
    })
}

fn put_head(out: &mut BytesMut, kind: u16, flags: u8, len: usize) {
    out.put_u16(0x8000 | VERSION);
    out.put_u16(kind);
    put_flags(out, flags, len);
}

fn put_flags(out: &mut BytesMut, flags: u8, len: usize) {
    out.put_u8(flags);
    out.put_uint(len as u64, 3);
}

/// Writes a SYN_STREAM. `block` is compressed and at most [`MAX_CONTROL`] - 10 bytes.
pub fn put_syn_stream(out: &mut BytesMut, stream: u32, block: &[u8]) {
    put_head(out, SYN_STREAM, 0, 10 + block.len());
    out.put_u32(stream);
    out.put_u32(0); // no associated stream
    out.put_u16(0); // highest priority, no slot
    out.put_slice(block);
}

/// Writes a SYN_REPLY.
pub fn put_syn_reply(out: &mut BytesMut, stream: u32, block: &[u8]) {
    put_head(out, SYN_REPLY, 0, 4 + block.len());
    out.put_u32(stream);
    out.put_slice(block);
}

/// Writes a RST_STREAM.
pub fn put_reset(out: &mut BytesMut, stream: u32, status: u32) {
    put_head(out, RST_STREAM, 0, 8);
    out.put_u32(stream);
    out.put_u32(status);
}

/// Writes a PING.
pub fn put_ping(out: &mut BytesMut, id: u32) {
    put_head(out, PING, 0, 4);
    out.put_u32(id);
}

/// Writes a GOAWAY with status OK.
pub fn put_go_away(out: &mut BytesMut, last: u32) {
    put_head(out, GOAWAY, 0, 8);
    out.put_u32(last);
    out.put_u32(0);
}

/// Writes the head of a data frame; `len` bytes, at most [`MAX_DATA`], must follow.
pub fn put_data_head(out: &mut BytesMut, stream: u32, fin: bool, len: usize) {
    out.put_u32(stream & 0x7fff_ffff);
    put_flags(out, if fin { FIN } else { 0 }, len);
}
