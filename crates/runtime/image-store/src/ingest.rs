//! Content on its way: a part that grows, goes on after a break, and counts when it is whole.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::digest::{Digest, Hasher};
use crate::error::StoreError;
use crate::files;
use crate::store::Writing;

/// A layer on its way into the store: `ingest/HEX.part`. Whoever calls sees to it that one at a time writes to it.
#[derive(Debug)]
pub struct Ingest {
    path: PathBuf,
    file: File,
    hasher: Hasher,
    digest: Digest,
    size: u64,
    have: u64,
}

impl Writing {
    /// Begins content, or goes on with what an earlier attempt left; that is read again, as the digest is over all of it.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn ingest(&self, digest: &Digest, size: u64) -> Result<Ingest, StoreError> {
        self.ingest_in(part_path(self.store.root(), digest), digest, size)
    }

    /// As [`Self::ingest`], in a file of this writer's own, which goes with it: for who waits no longer for another one that brings the
    /// same.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn ingest_alone(&self, digest: &Digest, size: u64) -> Result<Ingest, StoreError> {
        self.ingest_in(self.own_part(digest), digest, size)
    }

    fn ingest_in(&self, path: PathBuf, digest: &Digest, size: u64) -> Result<Ingest, StoreError> {
        self.keep([*digest]);
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = options.map_err(StoreError::disk("open", &path))?;
        let mut ingest = Ingest { path, file, hasher: Hasher::new(), digest: *digest, size, have: 0 };
        ingest.read_what_is_there()?;
        Ok(ingest)
    }
}

pub(crate) fn part_path(root: &Path, digest: &Digest) -> PathBuf {
    root.join("ingest").join(format!("{}.part", digest.hex()))
}

impl Ingest {
    /// Bytes that are here already.
    #[must_use]
    pub fn have(&self) -> u64 {
        self.have
    }

    /// Bytes in all.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// More than there should be, or the disk refuses.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let found = self.have + bytes.len() as u64;
        if found > self.size {
            return Err(StoreError::Size { digest: self.digest, promised: self.size, found });
        }
        self.file.write_all(bytes).map_err(StoreError::disk("write", &self.path))?;
        self.hasher.update(bytes);
        self.have = found;
        Ok(())
    }

    /// Forgets what came so far.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn restart(&mut self) -> Result<(), StoreError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(StoreError::disk("empty", &self.path))?;
        (self.hasher, self.have) = (Hasher::new(), 0);
        Ok(())
    }

    /// The content, if it is whole and what it should be; a wrong one is thrown away.
    ///
    /// # Errors
    /// It is not, or the disk refuses.
    pub fn verified(mut self) -> Result<File, StoreError> {
        if self.have != self.size {
            return Err(StoreError::Size { digest: self.digest, promised: self.size, found: self.have });
        }
        let found = std::mem::take(&mut self.hasher).finish();
        if found != self.digest {
            files::remove_file(&self.path)?;
            return Err(StoreError::Digest { promised: self.digest, found });
        }
        self.file.rewind().map_err(StoreError::disk("read", &self.path))?;
        Ok(self.file)
    }

    fn read_what_is_there(&mut self) -> Result<(), StoreError> {
        let length = self.file.metadata().map_err(StoreError::disk("read", &self.path))?.len();
        if length > self.size {
            return self.restart();
        }
        let mut buffer = vec![0; 128 << 10];
        let mut reader = BufReader::with_capacity(0, &self.file);
        loop {
            match reader.read(&mut buffer).map_err(StoreError::disk("read", &self.path))? {
                0 => break,
                read => {
                    self.hasher.update(&buffer[..read]);
                    self.have += read as u64;
                }
            }
        }
        self.file.seek(SeekFrom::Start(self.have)).map_err(StoreError::disk("read", &self.path))?;
        Ok(())
    }
}
