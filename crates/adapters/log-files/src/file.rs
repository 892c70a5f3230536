//! An open log file.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{Errno, ReadWriteFlags};

/// A path that leads nowhere.
#[derive(Debug)]
pub struct ResolveError {
    /// The first part of it that cannot be looked at.
    pub at: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// The path with all its symlinks resolved. Blocks.
///
/// # Errors
/// A part of it is missing or may not be looked at.
pub fn resolve(path: &Path) -> Result<PathBuf, ResolveError> {
    path.canonicalize().map_err(|source| {
        let mut parts: Vec<&Path> = path.ancestors().collect();
        parts.reverse();
        let broken = parts.into_iter().find(|p| !p.as_os_str().is_empty() && p.symlink_metadata().is_err());
        ResolveError { at: broken.unwrap_or(path).to_owned(), source }
    })
}

/// A log file, open for reading. Clones are the same open file.
#[derive(Clone, Debug)]
pub struct LogFile {
    file: Arc<File>,
    dev: u64,
    ino: u64,
    /// The file system answers reads that must not wait.
    can_read_now: Arc<AtomicBool>,
}

impl LogFile {
    /// A file that whoever opened it knows to be a regular one.
    ///
    /// # Errors
    /// The system does not tell what it is.
    pub fn new(file: File) -> io::Result<Self> {
        let facts = file.metadata()?;
        let can_read_now = Arc::new(AtomicBool::new(true));
        Ok(Self { file: Arc::new(file), dev: facts.dev(), ino: facts.ino(), can_read_now })
    }

    /// Bytes in the file now. Does not wait: the inode of an open file is in memory.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Reads what is in memory already; `None` when some of it would have to come from the disk, or may.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_now(&self, offset: u64, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if !self.can_read_now.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match rustix::io::preadv2(&*self.file, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT) {
            Ok(n) => Ok(Some(n)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                self.can_read_now.store(false, Ordering::Relaxed);
                Ok(None)
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Reads from the file. Blocks.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read_at(buffer, offset) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Bytes in the file that has this path now, when it is another one than this. `None`: it is this one, or there is none.
    ///
    /// # Errors
    /// The path cannot be looked at.
    pub fn successor(&self, path: &Path) -> io::Result<Option<u64>> {
        match path.symlink_metadata() {
            Ok(facts) => {
                let same = facts.dev() == self.dev && facts.ino() == self.ino;
                Ok((!same && facts.is_file()).then_some(facts.len()))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }
}
