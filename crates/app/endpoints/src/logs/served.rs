//! A file that is read in chunks, each on a thread that may wait for its disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use actor::{Class, Effects};

/// Bytes read at a time; what one client holds of memory.
const CHUNK: u64 = 64 * 1024;

pub(super) struct Served {
    file: Arc<File>,
    effects: Effects,
}

impl Served {
    pub(super) fn new(file: File, effects: &Effects) -> Self {
        Self { file: Arc::new(file), effects: effects.clone() }
    }

    /// At most `limit` bytes from `start` on, and no more than a chunk; none behind the end of the file.
    pub(super) async fn read(&self, start: u64, limit: u64) -> io::Result<Vec<u8>> {
        let file = self.file.clone();
        let read = move || {
            let mut bytes = vec![0; usize::try_from(limit.min(CHUNK)).unwrap_or(0)];
            let n = file.read_at(&mut bytes, start)?;
            bytes.truncate(n);
            Ok(bytes)
        };
        self.effects.attempt(Class::ServedFiles, read).await.map_err(io::Error::other)?
    }
}
