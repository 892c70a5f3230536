//! Archives that are no layers: archives of whole images, from which files are picked.

use std::io::{self, Read};
use std::sync::atomic::AtomicBool;

use crate::archive::{Archive, Kind};
use crate::error::UnpackError;
use crate::limits::Limits;
use crate::stream::Stream;

/// A file of an archive, or a link to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name, as the archive has it.
    pub name: String,
    /// Where a link leads; empty: it is a file.
    pub link: String,
    /// Where its bytes begin in the archive without compression.
    pub offset: u64,
    /// How many there are.
    pub size: u64,
}

/// Lists the files and links of an archive without compression; names that are no text are left out.
///
/// # Errors
/// It is no archive, or larger than is allowed.
pub fn members(archive: impl Read, limits: &Limits) -> Result<Vec<Member>, UnpackError> {
    let go_on = AtomicBool::new(false);
    let mut archive = Archive::new(Stream::new(archive, *limits, &go_on)?);
    let mut members = Vec::new();
    while let Some(entry) = archive.next()? {
        let text = |bytes| String::from_utf8(bytes).ok();
        if !matches!(entry.kind, Kind::File | Kind::Symlink | Kind::HardLink) {
            continue;
        }
        let offset = archive.at();
        let link = if entry.kind == Kind::File { Some(String::new()) } else { text(entry.link) };
        if let (Some(name), Some(link)) = (text(entry.name), link) {
            members.push(Member { name, link, offset, size: entry.size });
        }
    }
    Ok(members)
}

/// A file without its compression, within limits.
pub struct Plain<'a, R: Read>(Stream<'a, R>);

impl<'a, R: Read> Plain<'a, R> {
    /// By its first bytes.
    ///
    /// # Errors
    /// It is compressed in a way that is not known here, or cannot be read.
    pub fn new(source: R, limits: &Limits, stop: &'a AtomicBool) -> Result<Self, UnpackError> {
        Stream::new(source, *limits, stop).map(Self)
    }

    /// Whether it is compressed at all.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.0.is_compressed()
    }
}

impl<R: Read> Read for Plain<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf).map_err(|e| match e {
            UnpackError::Source(e) => e,
            other => io::Error::new(io::ErrorKind::InvalidData, other),
        })
    }
}
