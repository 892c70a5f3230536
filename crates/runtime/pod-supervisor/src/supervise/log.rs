//! The file of a container's log.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat, open};
use rustix::io::Errno;

/// Opens a log for appending. Whoever owns its folder may have put something else there: nothing is waited for and no link followed,
/// and what is no file is refused.
fn file(path: &Path) -> io::Result<File> {
    let careful = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | careful;
    let refused = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("not a regular file but {what}"));
    let file = match open(path, flags, Mode::from_raw_mode(0o640)) {
        Ok(file) => file,
        Err(Errno::LOOP) => return Err(refused("a symbolic link")),
        // A FIFO that nobody reads, or a socket.
        Err(Errno::NXIO) => return Err(refused("a FIFO, a socket or a device")),
        Err(e) => return Err(e.into()),
    };
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(refused("a FIFO or a device"));
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file.into())
}

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
        self.file = Some(file(&self.path)?);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_is_a_log() {
        let dir = tempfile::tempdir().expect("folder");
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("target"), "").expect("file");
        std::os::unix::fs::symlink(at("target"), at("link")).expect("link");
        let fifo = |name: &str| {
            let mode = Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, at(name), FileType::Fifo, mode, 0).expect("FIFO");
        };
        fifo("unread");
        fifo("read");
        let _reader = open(at("read"), OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).expect("reader");
        for name in ["link", "unread", "read", ""] {
            let refused = file(&at(name)).map(drop).expect_err(name);
            assert!(name.is_empty() || refused.to_string().contains("not a regular file"), "{name}: {refused}");
        }
        let mut log = Log::open(&at("log")).expect("log");
        assert_eq!(log.write(b"line\n"), None);
        let flags = fcntl_getfl(log.file.as_ref().expect("open")).expect("flags");
        assert!(flags.contains(OFlags::APPEND) && !flags.contains(OFlags::NONBLOCK), "{flags:?}");
        assert_eq!(std::fs::read(at("log")).expect("read"), b"line\n");
    }
}
