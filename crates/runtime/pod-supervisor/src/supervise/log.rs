//! The file of a container's log.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A log that may be none, or full: the container goes on then, and its output is lost and counted.
#[derive(Debug, Default)]
pub(super) struct Log {
    path: PathBuf,
    file: Option<File>,
    /// Bytes that could not be written since the last success.
    lost: u64,
}

impl Log {
    /// Opens for appending; an empty path: no log.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut log = Self { path: path.to_owned(), ..Self::default() };
        log.reopen()?;
        Ok(log)
    }

    /// Opens the path anew: the old file was renamed.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        if self.path.as_os_str().is_empty() {
            return Ok(());
        }
        self.file = Some(OpenOptions::new().append(true).create(true).mode(0o640).open(&self.path)?);
        Ok(())
    }

    /// Writes whole lines. Answers what to say about a failure, once per run of failures.
    pub(super) fn write(&mut self, lines: &[u8]) -> Option<String> {
        let file = self.file.as_mut()?;
        match file.write_all(lines) {
            Ok(()) => {
                self.lost = 0;
                None
            }
            Err(e) => {
                let first = self.lost == 0;
                self.lost += u64::try_from(lines.len()).unwrap_or(u64::MAX);
                first.then(|| format!("{}: output is lost: {e}", self.path.display()))
            }
        }
    }
}
