//! Header blocks: name and value pairs, compressed with one zlib stream per direction and connection that starts with the
//! dictionary of SPDY/3.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use thiserror::Error;

/// The dictionary that SPDY/3 prescribes (section 2.6.10.1).
pub const DICTIONARY: &[u8] = include_bytes!("dictionary.bin");

/// Longest block, before compression.
pub const MAX_BLOCK: usize = 64 << 10;

/// Headers of a stream. Names are lower case; several values of a name are joined with NUL.
pub type Headers = BTreeMap<String, String>;

/// Why a block cannot be read or written. The compression state is lost with it, so the connection is.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    /// Not zlib, another dictionary, or cut off.
    #[error("header block is not compressed as SPDY/3 says")]
    Compression,
    /// More than [`MAX_BLOCK`].
    #[error("header block of more than {MAX_BLOCK} bytes")]
    TooLong,
    /// Lengths that do not fit, or text that is not UTF-8.
    #[error("header block is malformed")]
    Malformed,
}

/// Compresses blocks, in the order in which they are sent.
#[derive(Debug)]
pub struct Encoder {
    zlib: Compress,
}

impl Default for Encoder {
    fn default() -> Self {
        let mut zlib = Compress::new(Compression::new(6), true);
        zlib.set_dictionary(DICTIONARY).expect("a fresh compressor takes a dictionary");
        Self { zlib }
    }
}

impl Encoder {
    /// The next block.
    ///
    /// # Errors
    /// When the headers are longer than [`MAX_BLOCK`]; the encoder is as it was before then.
    pub fn encode(&mut self, headers: &Headers) -> Result<Vec<u8>, HeaderError> {
        let mut plain = Vec::new();
        put_text_count(&mut plain, headers.len());
        for (name, value) in headers {
            for text in [&name.to_ascii_lowercase(), value] {
                put_text_count(&mut plain, text.len());
                plain.extend_from_slice(text.as_bytes());
            }
        }
        if plain.len() > MAX_BLOCK / 2 {
            return Err(HeaderError::TooLong); // what does not compress must fit too
        }
        let mut out = Vec::with_capacity(plain.len() + 64);
        let mut rest = plain.as_slice();
        loop {
            out.reserve(256);
            let before = self.zlib.total_in();
            self.zlib.compress_vec(rest, &mut out, FlushCompress::Sync).map_err(|_| HeaderError::Compression)?;
            let taken = usize::try_from(self.zlib.total_in() - before).map_err(|_| HeaderError::Compression)?;
            rest = &rest[taken..];
            if rest.is_empty() && out.len() < out.capacity() {
                return Ok(out);
            }
        }
    }
}

fn put_text_count(out: &mut Vec<u8>, count: usize) {
    out.put_u32(u32::try_from(count).unwrap_or(u32::MAX));
}

/// Decompresses blocks, in the order in which they came.
#[derive(Debug)]
pub struct Decoder {
    zlib: Decompress,
    started: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { zlib: Decompress::new(true), started: false }
    }
}

impl Decoder {
    /// The headers of the next block.
    ///
    /// # Errors
    /// When it is no block; the decoder is of no more use then.
    pub fn decode(&mut self, block: &[u8]) -> Result<Headers, HeaderError> {
        let plain = self.inflate(block)?;
        parse(&plain)
    }

    fn inflate(&mut self, mut block: &[u8]) -> Result<Vec<u8>, HeaderError> {
        let mut plain = Vec::with_capacity(1024);
        loop {
            if plain.len() > MAX_BLOCK {
                return Err(HeaderError::TooLong);
            }
            plain.reserve(1024);
            let (before_in, before_out) = (self.zlib.total_in(), plain.len());
            let result = self.zlib.decompress_vec(block, &mut plain, FlushDecompress::Sync);
            let taken = usize::try_from(self.zlib.total_in() - before_in).map_err(|_| HeaderError::Compression)?;
            block = block.get(taken..).ok_or(HeaderError::Compression)?;
            match result {
                Err(e) if e.needs_dictionary().is_some() && !self.started => {
                    self.started = true;
                    self.zlib.set_dictionary(DICTIONARY).map_err(|_| HeaderError::Compression)?;
                    continue;
                }
                Err(_) | Ok(Status::StreamEnd) => return Err(HeaderError::Compression),
                Ok(_) => {}
            }
            if block.is_empty() && plain.len() < plain.capacity() {
                return Ok(plain);
            }
            if taken == 0 && plain.len() == before_out {
                return Err(HeaderError::Compression);
            }
        }
    }
}

/// Reads a plain block.
///
/// # Errors
/// When lengths do not fit or a text is not UTF-8.
pub fn parse(mut plain: &[u8]) -> Result<Headers, HeaderError> {
    let mut headers = Headers::new();
    let count = plain.try_get_u32().map_err(|_| HeaderError::Malformed)?;
    for _ in 0..count {
        let name = text(&mut plain)?.to_ascii_lowercase();
        let value = text(&mut plain)?;
        headers.insert(name, value.to_owned());
    }
    if plain.is_empty() { Ok(headers) } else { Err(HeaderError::Malformed) }
}

fn text<'a>(plain: &mut &'a [u8]) -> Result<&'a str, HeaderError> {
    let len = plain.try_get_u32().map_err(|_| HeaderError::Malformed)?;
    let len = usize::try_from(len).map_err(|_| HeaderError::Malformed)?;
    let (text, rest) = plain.split_at_checked(len).ok_or(HeaderError::Malformed)?;
    *plain = rest;
    std::str::from_utf8(text).map_err(|_| HeaderError::Malformed)
}
