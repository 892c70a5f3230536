//! What files take on disk.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use model::reading::DiskUse;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};

/// A block of `st_blocks`.
const BLOCK: u64 = 512;
/// Deepest nesting that is followed: each level holds an open directory.
const DEEPEST: usize = 1000;

pub(super) fn files_in(dir: &Path) -> Option<DiskUse> {
    let mut sum = DiskUse::default();
    for entry in fs::read_dir(dir).ok()?.flatten() {
        // Gone meanwhile: nothing to count. The kind comes with the entry, the link itself is looked at.
        if entry.file_type().is_ok_and(|t| t.is_file())
            && let Ok(m) = entry.metadata()
        {
            sum = sum.plus(DiskUse { bytes: m.blocks().saturating_mul(BLOCK), inodes: 1 });
        }
    }
    Some(sum)
}

pub(super) fn file(path: &Path) -> Option<DiskUse> {
    let m = fs::symlink_metadata(path).ok()?;
    Some(DiskUse { bytes: m.blocks().saturating_mul(BLOCK), inodes: 1 })
}

/// Walks with open directories, so that nobody can lead it elsewhere by swapping one for a link. Beyond so many entries, and below
/// [`DEEPEST`], nothing is counted: the answer is the least that it may be.
pub(super) fn tree(dir: &Path, max_entries: u64) -> Option<DiskUse> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let root = rustix::fs::openat(CWD, dir, flags, Mode::empty()).ok()?;
    let top = rustix::fs::fstat(&root).ok()?;
    let mut walk = Walk { device: top.st_dev, sum: use_of(&top), linked: BTreeSet::new(), left: max_entries };
    walk.below(root, 0);
    Some(walk.sum)
}

struct Walk {
    device: u64,
    sum: DiskUse,
    /// Files with several names that were counted.
    linked: BTreeSet<u64>,
    left: u64,
}

impl Walk {
    fn below(&mut self, dir: OwnedFd, depth: usize) {
        let Ok(mut entries) = rustix::fs::Dir::new(dir) else { return };
        while let Some(entry) = entries.read() {
            let Ok(entry) = entry else { return };
            let name = entry.file_name();
            if name.to_bytes() == b"." || name.to_bytes() == b".." {
                continue;
            }
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let Ok(fd) = entries.fd() else { return };
            let Ok(stat) = rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if stat.st_dev != self.device {
                continue;
            }
            let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            if !is_dir && stat.st_nlink > 1 && !self.linked.insert(stat.st_ino) {
                continue;
            }
            self.sum = self.sum.plus(use_of(&stat));
            if is_dir && depth < DEEPEST {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                if let Ok(child) = rustix::fs::openat(fd, name, flags, Mode::empty()) {
                    self.below(child, depth + 1);
                }
            }
        }
    }
}

fn use_of(stat: &Stat) -> DiskUse {
    DiskUse { bytes: u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(BLOCK), inodes: 1 }
}
