//! What a layer is compressed with.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::error::UnpackError;

/// Bytes that tell all kinds apart.
const HEAD: usize = 6;
/// Bytes read at once.
const BUFFER: usize = 64 << 10;

type Source<R> = BufReader<io::Chain<Cursor<Vec<u8>>, R>>;

/// The archive without compression. Bytes behind the end of compressed data are an error of reading.
pub(crate) enum Decoder<R: Read> {
    Plain(Source<R>),
    Gzip(Box<MultiGzDecoder<Source<R>>>),
    Zstd(Box<Zstd<Source<R>>>),
}

impl<R: Read> Decoder<R> {
    /// By the first bytes.
    pub(crate) fn new(mut source: R, window: u64) -> Result<Self, UnpackError> {
        let mut head = Vec::with_capacity(HEAD);
        source.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(UnpackError::Source)?;
        let foreign = match head.as_slice() {
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Some("xz"),
            [b'B', b'Z', b'h', ..] => Some("bzip2"),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some("lz4"),
            [b'P', b'K', 3, 4, ..] => Some("zip"),
            _ => None,
        };
        if let Some(foreign) = foreign {
            return Err(UnpackError::Compression(format!("it is {foreign}; layers are plain, gzip or zstd")));
        }
        let kind = (head.starts_with(&[0x1f, 0x8b]), is_zstd(&head));
        let source = BufReader::with_capacity(BUFFER, Cursor::new(head).chain(source));
        Ok(match kind {
            (true, _) => Self::Gzip(Box::new(MultiGzDecoder::new(source))),
            (_, true) => Self::Zstd(Box::new(Zstd::new(source, window))),
            _ => Self::Plain(source),
        })
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(source) => source.read(buf),
            Self::Gzip(decoder) => decoder.read(buf),
            Self::Zstd(decoder) => decoder.read(buf),
        }
    }
}

/// A frame of data, or one that readers leap over.
fn is_zstd(head: &[u8]) -> bool {
    head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Frames of zstd, one behind the other, as zstd:chunked layers have them.
pub(crate) struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    within_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R, window: u64) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(window);
        Self { source, decoder, within_frame: false }
    }

    /// Whether there is another frame.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => {
                    self.within_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let length = u64::from(length);
                    if io::copy(&mut self.source.by_ref().take(length), &mut io::sink())? != length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(e) => return Err(io::Error::new(io::ErrorKind::InvalidData, e.to_string())),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.within_frame && !self.begin()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                let step = self.decoder.decode_blocks(&mut self.source, one);
                step.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string()))?;
            }
            let read = self.decoder.read(buf)?;
            if read > 0 || buf.is_empty() {
                return Ok(read);
            }
            self.within_frame = false;
        }
    }
}
