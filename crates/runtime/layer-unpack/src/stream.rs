//! The archive without compression, hashed and measured while it is read.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use ring::digest::{Context, SHA256};

use crate::compression::Decoder;
use crate::error::UnpackError;
use crate::limits::Limits;

/// Counts what was taken of the compressed file.
struct Counted<R> {
    source: R,
    count: Rc<Cell<u64>>,
    /// The file's own error, which is not the compressed data's fault.
    failed: Rc<Cell<bool>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buf).inspect_err(|e| self.failed.set(e.kind() != io::ErrorKind::Interrupted))?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

pub(crate) struct Stream<'a, R: Read> {
    decoder: Decoder<Counted<R>>,
    taken: Rc<Cell<u64>>,
    failed: Rc<Cell<bool>>,
    given: u64,
    hash: Context,
    limits: Limits,
    stop: &'a AtomicBool,
}

impl<'a, R: Read> Stream<'a, R> {
    pub(crate) fn new(source: R, limits: Limits, stop: &'a AtomicBool) -> Result<Self, UnpackError> {
        let (taken, failed) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        let counted = Counted { source, count: taken.clone(), failed: failed.clone() };
        let decoder = Decoder::new(counted, limits.window)?;
        Ok(Self { decoder, taken, failed, given: 0, hash: Context::new(&SHA256), limits, stop })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn is_compressed(&self) -> bool {
        !self.decoder.is_plain()
    }

    /// Bytes given so far.
    pub(crate) fn at(&self) -> u64 {
        self.given
    }

    /// Some bytes; none at the end.
    pub(crate) fn read(&mut self, buf: &mut [u8]) -> Result<usize, UnpackError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(UnpackError::Stopped);
        }
        let read = loop {
            match self.decoder.read(buf) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if self.failed.get() => return Err(UnpackError::Source(e)),
                other => break other.map_err(|e| UnpackError::Compression(e.to_string()))?,
            }
        };
        self.hash.update(&buf[..read]);
        self.given += read as u64;
        self.judge()?;
        Ok(read)
    }

    /// Fills the buffer; `false`: the archive was over before its first byte.
    pub(crate) fn fill(&mut self, buf: &mut [u8], within: &'static str) -> Result<bool, UnpackError> {
        let mut have = 0;
        while have < buf.len() {
            match self.read(&mut buf[have..])? {
                0 if have == 0 => return Ok(false),
                0 => return Err(UnpackError::Truncated { at: self.given, within }),
                read => have += read,
            }
        }
        Ok(true)
    }

    fn judge(&self) -> Result<(), UnpackError> {
        let Limits { bytes, ratio, ratio_from, .. } = self.limits;
        if self.given > bytes {
            return Err(UnpackError::Limit(format!("more than {bytes} bytes without compression")));
        }
        let bomb = self.given > ratio_from && self.given / ratio > self.taken.get();
        if bomb && !self.decoder.is_plain() {
            let taken = self.taken.get();
            return Err(UnpackError::Limit(format!(
                "{taken} bytes have become {} so far, more than {ratio} of each: a decompression bomb",
                self.given
            )));
        }
        Ok(())
    }

    /// The diff id, and bytes in all.
    pub(crate) fn finish(self) -> ([u8; 32], u64) {
        let mut id = [0; 32];
        id.copy_from_slice(self.hash.finish().as_ref());
        (id, self.given)
    }
}
