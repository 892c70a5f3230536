//! One directory of the kernel's file systems, opened once for all reads in it.

use std::os::fd::OwnedFd;
use std::path::Path;

use model::Timestamp;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

/// Longest file that is of interest; a longer one is cut.
const LONGEST: usize = 256 << 10;
/// A shorter answer than this is the whole file: the kernel fills a page before it stops, and no line is that long.
const SURELY_SHORT: usize = 2048;

/// Whether a path is a directory itself.
pub(super) fn is_dir(path: &Path) -> bool {
    let stat = rustix::fs::statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory)
}

/// An open directory.
pub(super) struct Dir(OwnedFd);

impl Dir {
    /// `None` when it is not there.
    pub(super) fn open(path: &Path) -> Option<Self> {
        rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok().map(Self)
    }

    /// Content of a file, cut at some length; `None` when it is not there or does not want to be read.
    pub(super) fn text(&self, file: &str) -> Option<String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&self.0, file, flags, Mode::empty()).ok()?;
        let mut buffer = [0_u8; 4096];
        let read = rustix::io::read(&file, &mut buffer).ok()?;
        if read < SURELY_SHORT {
            return std::str::from_utf8(buffer.get(..read)?).ok().map(str::to_owned);
        }
        let mut all = buffer[..read].to_vec();
        while all.len() < LONGEST {
            match rustix::io::read(&file, &mut buffer).ok()? {
                0 => break,
                n => all.extend_from_slice(&buffer[..n]),
            }
        }
        String::from_utf8(all).ok()
    }

    /// The number that a file holds.
    pub(super) fn number(&self, file: &str) -> Option<u64> {
        self.text(file)?.trim().parse().ok()
    }

    /// The first number of a file; `max` or a negative one is none.
    pub(super) fn bound(&self, file: &str) -> Option<u64> {
        self.text(file)?.split_whitespace().next()?.parse().ok()
    }

    /// When it was made, as far as the kernel remembers.
    #[allow(clippy::useless_conversion, reason = "the width of these fields differs between machines")]
    pub(super) fn made(&self) -> Timestamp {
        let Ok(s) = rustix::fs::fstat(&self.0) else { return Timestamp::ZERO };
        let nanos = i64::try_from(s.st_mtime_nsec).unwrap_or(0);
        Timestamp(i64::from(s.st_mtime).saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    /// A process in here, or in a directory up to `depth` levels below.
    pub(super) fn any_process(&self, depth: u32) -> Option<u32> {
        let own = self.text("cgroup.procs").unwrap_or_default();
        // 0 stands for a process that this namespace cannot name.
        if let Some(pid) = own.lines().find_map(|l| l.trim().parse().ok().filter(|pid| *pid != 0)) {
            return Some(pid);
        }
        let below = depth.checked_sub(1)?;
        self.child_names().iter().find_map(|name| self.child(name)?.any_process(below))
    }

    fn child(&self, name: &str) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat(&self.0, name, flags, Mode::empty()).ok().map(Self)
    }

    fn child_names(&self) -> Vec<String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(fd) = rustix::fs::openat(&self.0, ".", flags, Mode::empty()) else { return Vec::new() };
        let Ok(entries) = rustix::fs::Dir::new(fd) else { return Vec::new() };
        let dirs = entries.flatten().filter(|e| e.file_type() == FileType::Directory);
        let names = dirs.filter_map(|e| e.file_name().to_str().ok().map(str::to_owned));
        names.filter(|n| n != "." && n != "..").collect()
    }
}
