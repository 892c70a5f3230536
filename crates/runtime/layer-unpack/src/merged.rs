//! What layers show together, as a copy: for hosts and disks on which overlayfs cannot show it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags, chmodat, chownat, fchmod, fchown,
    fgetxattr, flistxattr, fsetxattr, lgetxattr, mknodat, utimensat,
};
use rustix::io::Errno;

use crate::place::{OPAQUE, taken};

/// Bytes of the names or of the value of extended attributes (`xattr(7)`).
const MAX_XATTR: usize = 64 << 10;

/// Why it failed. What was copied is to be thrown away.
#[derive(Debug, thiserror::Error)]
#[error("cannot copy {path:?} of the image")]
pub struct CopyError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

impl From<CopyError> for io::Error {
    fn from(e: CopyError) -> Self {
        io::Error::new(e.source.kind(), format!("{:?}: {}", e.path, e.source))
    }
}

/// Copies to the empty directory `into` what overlayfs would show of `lowers` (the topmost first), but for the properties of the root. Files that
/// share their data in a layer share it in the copy. Nobody changes a layer meanwhile.
///
/// # Errors
/// The disk refuses, or a path is longer than a call takes.
pub fn copy_merged(lowers: &[PathBuf], into: &Path) -> Result<(), CopyError> {
    let mut copy = Copy { lowers, into, linked: HashMap::new() };
    let mut left = vec![(PathBuf::new(), (0..lowers.len()).collect::<Vec<_>>())];
    let mut done = Vec::new();
    while let Some((path, shown_in)) = left.pop() {
        left.extend(copy.directory(&path, &shown_in)?);
        done.push((path, shown_in));
    }
    // From the inside out: each new entry has changed its directory's time.
    for (path, shown_in) in done.iter().rev().filter(|(path, _)| !path.as_os_str().is_empty()) {
        let from = lowers[shown_in[0]].join(path);
        let set = fs::symlink_metadata(&from).and_then(|facts| set_times(&into.join(path), &facts));
        set.map_err(|source| CopyError { path: path.clone(), source })?;
    }
    Ok(())
}

/// What stands at a name, as far as the layers looked at say.
enum Shown {
    /// Layers further down say nothing of it.
    Decided,
    /// A directory of these layers, and of those further down that have one.
    Directory(Vec<usize>),
    /// A directory of these layers alone.
    Closed(Vec<usize>),
}

struct Copy<'a> {
    lowers: &'a [PathBuf],
    into: &'a Path,
    /// Files with several names: their copy, by device and inode.
    linked: HashMap<(u64, u64), PathBuf>,
}

impl Copy<'_> {
    /// Copies what is in a directory; answers the directories in it, and which layers show them.
    fn directory(&mut self, path: &Path, shown_in: &[usize]) -> Result<Vec<(PathBuf, Vec<usize>)>, CopyError> {
        let mut names: BTreeMap<OsString, Shown> = BTreeMap::new();
        for layer in shown_in {
            let folder = self.lowers[*layer].join(path);
            let fail = |source| CopyError { path: path.to_owned(), source };
            for entry in fs::read_dir(&folder).map_err(fail)? {
                let name = entry.map_err(fail)?.file_name();
                let inside = path.join(&name);
                let shown = names.remove(&name);
                let shown = self.entry(&inside, *layer, shown).map_err(|source| CopyError { path: inside, source })?;
                names.insert(name, shown);
            }
        }
        let folders = names.into_iter().filter_map(|(name, shown)| match shown {
            Shown::Decided => None,
            Shown::Directory(layers) | Shown::Closed(layers) => Some((path.join(name), layers)),
        });
        Ok(folders.collect())
    }

    /// What a layer's entry adds to what those above have of its name.
    fn entry(&mut self, path: &Path, layer: usize, above: Option<Shown>) -> io::Result<Shown> {
        let from = self.lowers[layer].join(path);
        let mut layers = match above {
            None => Vec::new(),
            Some(Shown::Directory(layers)) => layers,
            Some(decided) => return Ok(decided),
        };
        let facts = fs::symlink_metadata(&from)?;
        if facts.is_dir() {
            if layers.is_empty() {
                let to = self.into.join(path);
                fs::create_dir(&to)?;
                copy_properties(&File::open(&from)?, &File::open(&to)?, &facts)?;
            }
            layers.push(layer);
            return Ok(if is_opaque(&from)? { Shown::Closed(layers) } else { Shown::Directory(layers) });
        }
        if !layers.is_empty() {
            return Ok(Shown::Closed(layers));
        }
        if !is_whiteout(&facts) {
            self.copy(&from, path, &facts)?;
        }
        Ok(Shown::Decided)
    }

    /// Copies what is no directory.
    fn copy(&mut self, from: &Path, path: &Path, facts: &Metadata) -> io::Result<()> {
        let to = self.into.join(path);
        if facts.nlink() > 1 {
            let inode = (facts.dev(), facts.ino());
            if let Some(first) = self.linked.get(&inode) {
                return fs::hard_link(first, &to);
            }
            self.linked.insert(inode, to.clone());
        }
        if facts.is_file() {
            let mut source = File::open(from)?;
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&to)?;
            // By `copy_file_range`: disks that can share the data, do.
            io::copy(&mut source, &mut file)?;
            copy_properties(&source, &file, facts)?;
        } else {
            if facts.file_type().is_symlink() {
                symlink(fs::read_link(from)?, &to)?;
            } else {
                let mode = Mode::from_raw_mode(facts.mode());
                mknodat(CWD, &to, FileType::from_raw_mode(facts.mode()), mode, facts.rdev())?;
            }
            let (uid, gid) = (Uid::from_raw(facts.uid()), Gid::from_raw(facts.gid()));
            chownat(CWD, &to, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
            if !facts.file_type().is_symlink() {
                // Not what the umask left of it.
                chmodat(CWD, &to, Mode::from_raw_mode(facts.mode()), AtFlags::empty())?;
            }
        }
        set_times(&to, facts)
    }
}

/// As overlayfs has it: a character device 0/0.
fn is_whiteout(facts: &Metadata) -> bool {
    facts.file_type().is_char_device() && facts.rdev() == 0
}

fn is_opaque(folder: &Path) -> io::Result<bool> {
    let mut value = [0; 1];
    match lgetxattr(folder, OPAQUE, &mut value[..]) {
        Ok(length) => Ok(value[..length] == *b"y"),
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::RANGE) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Owner first, as a new owner takes set-user-id and capabilities away.
fn copy_properties(from: &impl AsFd, to: &impl AsFd, facts: &Metadata) -> io::Result<()> {
    fchown(to, Some(Uid::from_raw(facts.uid())), Some(Gid::from_raw(facts.gid())))?;
    fchmod(to, Mode::from_raw_mode(facts.mode()))?;
    let mut names = vec![0; MAX_XATTR];
    let length = match flistxattr(from, &mut names) {
        Err(Errno::OPNOTSUPP) => 0,
        other => other?,
    };
    let names = names[..length].split(|b| *b == 0).filter_map(|name| std::str::from_utf8(name).ok());
    for name in names.filter(|name| taken(name)) {
        let mut value = vec![0; MAX_XATTR];
        let length = fgetxattr(from, name, &mut value)?;
        fsetxattr(to, name, &value[..length], XattrFlags::empty())?;
    }
    Ok(())
}

fn set_times(path: &Path, facts: &Metadata) -> io::Result<()> {
    let nanoseconds = i64::from(u32::try_from(facts.mtime_nsec()).unwrap_or(0));
    let at = Timespec { tv_sec: facts.mtime(), tv_nsec: nanoseconds };
    let times = Timestamps { last_access: at, last_modification: at };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}
