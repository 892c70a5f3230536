//! A tar archive, entry by entry: ustar, GNU and POSIX names, bounded. `tar` knows the fields of a header; its own reader would take a
//! long name of any size into memory.

use std::io::Read;
use std::ops::Range;

use tar::{EntryType, Header};

use crate::error::UnpackError;
use crate::pax::{self, Pax, Time};
use crate::stream::Stream;

const BLOCK: usize = 512;
/// Headers that say something of an entry behind them: a name, a link, attributes, or twice as many.
const EXTENSIONS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
    HardLink,
    Character,
    Block,
    Fifo,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) name: Vec<u8>,
    pub(crate) link: Vec<u8>,
    /// Bytes of a file; nothing else has any.
    pub(crate) size: u64,
    /// Permissions with set-user-id and the like.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: Time,
    pub(crate) device: (u32, u32),
    pub(crate) xattrs: Vec<(String, Vec<u8>)>,
}

pub(crate) struct Archive<'a, R: Read> {
    stream: Stream<'a, R>,
    /// Of the entry that was given last: bytes of its file that were not read yet, and of the padding behind.
    data: u64,
    padding: u64,
    headers: u64,
    ended: bool,
}

impl<'a, R: Read> Archive<'a, R> {
    pub(crate) fn new(stream: Stream<'a, R>) -> Self {
        Self { stream, data: 0, padding: 0, headers: 0, ended: false }
    }

    /// The next entry. What was not read of the last one's file is skipped.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, UnpackError> {
        let (mut pax, mut name, mut link) = (Pax::default(), None, None);
        for _ in 0..=EXTENSIONS {
            let Some(header) = self.header()? else {
                let dangling = name.is_some() || link.is_some() || pax != Pax::default();
                return if dangling { Err(self.bad("it ends behind an extended header")) } else { Ok(None) };
            };
            match header.entry_type() {
                EntryType::GNULongName => name = Some(self.long_text(&header)?),
                EntryType::GNULongLink => link = Some(self.long_text(&header)?),
                EntryType::XHeader => {
                    let text = self.extension(&header)?;
                    pax::read(&text, &mut pax).map_err(|why| self.bad(why))?;
                }
                // Of the archive's maker; containerd leaves it out, too.
                EntryType::XGlobalHeader => drop(self.extension(&header)?),
                _ => return self.entry(&header, pax, name, link).map(Some),
            }
        }
        Err(self.bad("too many extended headers before one entry"))
    }

    /// Some bytes of the entry's file; none at its end.
    pub(crate) fn read(&mut self, buf: &mut [u8]) -> Result<usize, UnpackError> {
        let most = usize::try_from(self.data).unwrap_or(usize::MAX).min(buf.len());
        if most == 0 {
            return Ok(0);
        }
        match self.stream.read(&mut buf[..most])? {
            0 => Err(UnpackError::Truncated { at: self.stream.at(), within: "within a file" }),
            read => {
                self.data -= read as u64;
                Ok(read)
            }
        }
    }

    /// Bytes of the archive that were read.
    pub(crate) fn at(&self) -> u64 {
        self.stream.at()
    }

    /// Reads to the end, where there may be nothing but zeros. The diff id, and bytes in all.
    pub(crate) fn finish(mut self) -> Result<([u8; 32], u64), UnpackError> {
        let mut buf = vec![0; 16 << 10];
        loop {
            match self.stream.read(&mut buf)? {
                0 => return Ok(self.stream.finish()),
                read if buf[..read].iter().all(|b| *b == 0) => {}
                _ => return Err(self.bad("there is something behind its end")),
            }
        }
    }

    fn bad(&self, why: impl Into<String>) -> UnpackError {
        UnpackError::Archive { at: self.stream.at(), why: why.into() }
    }

    /// `None`: the archive is over, by a block of zeros or because nothing follows.
    fn header(&mut self) -> Result<Option<Header>, UnpackError> {
        self.skip()?;
        let mut header = Header::new_old();
        let more = !self.ended && self.stream.fill(header.as_mut_bytes(), "within a header")?;
        if !more || header.as_bytes().iter().all(|b| *b == 0) {
            self.ended = true;
            return Ok(None);
        }
        self.headers += 1;
        let most = self.stream.limits().entries;
        if self.headers > most {
            return Err(UnpackError::Limit(format!("more than {most} entries")));
        }
        let sum = header.cksum().ok();
        if sum.is_none_or(|sum| !sums(header.as_bytes()).contains(&i64::from(sum))) {
            return Err(self.bad("the checksum of a header is wrong"));
        }
        Ok(Some(header))
    }

    fn skip(&mut self) -> Result<(), UnpackError> {
        let mut buf = [0; 4096];
        while self.read(&mut buf)? > 0 {}
        let padding = usize::try_from(self.padding).unwrap_or(BLOCK).min(BLOCK);
        self.padding = 0;
        if padding > 0 && !self.stream.fill(&mut buf[..padding], "behind a file")? {
            return Err(UnpackError::Truncated { at: self.stream.at(), within: "behind a file" });
        }
        Ok(())
    }

    fn begin(&mut self, size: u64) {
        self.data = size;
        self.padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
    }

    /// What an extended header holds.
    fn extension(&mut self, header: &Header) -> Result<Vec<u8>, UnpackError> {
        let size = number(header, SIZE, Header::entry_size).ok_or_else(|| self.bad("a size is no number"))?;
        let most = self.stream.limits().extended_header;
        let length = usize::try_from(size).ok().filter(|l| *l <= most);
        let Some(length) = length else {
            return Err(UnpackError::Limit(format!("an extended header of {size} bytes, more than {most}")));
        };
        self.begin(size);
        let mut text = vec![0; length];
        let mut have = 0;
        while have < length {
            have += self.read(&mut text[have..])?;
        }
        Ok(text)
    }

    fn long_text(&mut self, header: &Header) -> Result<Vec<u8>, UnpackError> {
        let mut text = self.extension(header)?;
        if let Some(end) = text.iter().position(|b| *b == 0) {
            text.truncate(end);
        }
        Ok(text)
    }

    fn entry(
        &mut self,
        header: &Header,
        pax: Pax,
        name: Option<Vec<u8>>,
        link: Option<Vec<u8>>,
    ) -> Result<Entry, UnpackError> {
        let name = pax.path.or(name).unwrap_or_else(|| header.path_bytes().into_owned());
        let link = pax.link.or(link);
        let link = link.unwrap_or_else(|| header.link_name_bytes().map(|l| l.into_owned()).unwrap_or_default());
        let refused = |why: &str| UnpackError::entry(&name, why);
        let kind = kind(header.entry_type(), &name).map_err(refused)?;
        let told = match pax.size {
            Some(size) => size,
            None => number(header, SIZE, Header::entry_size).ok_or_else(|| refused("its size is no number"))?,
        };
        // As in Go's reader, which builds and reads most images: what a link or directory says of its size is not followed by data.
        let size = if kind == Kind::File { told } else { 0 };
        self.begin(size);
        let owner = |told: Option<u64>, field: Option<u64>| {
            let id = told.or(field).ok_or_else(|| refused("its owner is no number"))?;
            u32::try_from(id).ok().filter(|id| *id != u32::MAX).ok_or_else(|| refused("its owner is no user of Linux"))
        };
        let device = |field: std::io::Result<Option<u32>>| field.ok().flatten().unwrap_or(0);
        let mode = number(header, MODE, |h| h.mode().map(u64::from)).and_then(|m| u32::try_from(m).ok());
        let mtime = number(header, MTIME, Header::mtime);
        let seconds = mtime.and_then(|t| i64::try_from(t).ok()).ok_or_else(|| refused("its time is no number"))?;
        Ok(Entry {
            kind,
            size,
            mode: mode.ok_or_else(|| refused("its mode is no number"))? & 0o7777,
            uid: owner(pax.uid, number(header, UID, Header::uid))?,
            gid: owner(pax.gid, number(header, GID, Header::gid))?,
            mtime: pax.mtime.unwrap_or(Time { seconds, nanoseconds: 0 }),
            device: (device(header.device_major()), device(header.device_minor())),
            xattrs: pax.xattrs,
            name,
            link,
        })
    }
}

/// Fields of a header.
const MODE: Range<usize> = 100..108;
const UID: Range<usize> = 108..116;
const GID: Range<usize> = 116..124;
const SIZE: Range<usize> = 124..136;
const MTIME: Range<usize> = 136..148;

/// A number of a header; one that was left empty is 0.
fn number(header: &Header, field: Range<usize>, read: impl Fn(&Header) -> std::io::Result<u64>) -> Option<u64> {
    match header.as_bytes()[field].iter().all(|b| matches!(b, 0 | b' ')) {
        true => Some(0),
        false => read(header).ok(),
    }
}

fn kind(told: EntryType, name: &[u8]) -> Result<Kind, &'static str> {
    Ok(match told {
        // Before ustar a directory was a file whose name ends so.
        EntryType::Regular if name.ends_with(b"/") => Kind::Directory,
        EntryType::Regular | EntryType::Continuous => Kind::File,
        EntryType::Directory => Kind::Directory,
        EntryType::Symlink => Kind::Symlink,
        EntryType::Link => Kind::HardLink,
        EntryType::Char => Kind::Character,
        EntryType::Block => Kind::Block,
        EntryType::Fifo => Kind::Fifo,
        EntryType::GNUSparse => return Err("a sparse file, which no layer has"),
        _ => return Err("an entry of a kind that no layer has"),
    })
}

/// The sum of a header's bytes, its own field counted as spaces; old programs took the bytes as signed.
fn sums(header: &[u8; BLOCK]) -> [i64; 2] {
    let field = 148..156;
    let bytes = || header.iter().enumerate().map(|(at, b)| if field.contains(&at) { b' ' } else { *b });
    [bytes().map(i64::from).sum(), bytes().map(|b| i64::from(b.cast_signed())).sum()]
}
