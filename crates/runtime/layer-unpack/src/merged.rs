//! What layers show together, as a copy: for hosts on which overlayfs cannot show it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, Uid, XattrFlags, chmodat, chownat, lgetxattr, lsetxattr, mknodat, utimensat,
};
use rustix::io::Errno;

use crate::place::OPAQUE;
use crate::settle;

/// Entries of all layers together.
const MAX_ENTRIES: usize = 4 << 20;
/// Bytes of the value of an extended attribute (`xattr(7)`).
const MAX_XATTR: usize = 64 << 10;
const ACCESS: &str = "system.posix_acl_access";
/// Files with several names that are remembered; further ones are copied for each name.
const MAX_LINKED: usize = 1 << 12;

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
/// The disk refuses, a path is longer than a call takes, or there are more than four million entries.
pub fn copy_merged(lowers: &[PathBuf], into: &Path) -> Result<(), CopyError> {
    let mut copy = Copy { lowers, into, linked: HashMap::new(), left: MAX_ENTRIES };
    // The directory that is looked at, and in each one above it what is still to be looked at. No more than names: an author of images
    // says how many there are, and how long their paths.
    let mut path = PathBuf::new();
    let mut levels = vec![Level { shown_in: (0..lowers.len()).collect(), left: Vec::new() }];
    levels[0].left = copy.directory(&path, &levels[0].shown_in)?;
    while let Some(level) = levels.last_mut() {
        if let Some((name, shown_in)) = level.left.pop() {
            path.push(name);
            let left = copy.directory(&path, &shown_in)?;
            levels.push(Level { shown_in, left });
            continue;
        }
        // Last: entries change a directory's time, and take attributes from one that has some to be inherited.
        if let (Some(topmost), false) = (level.shown_in.first(), path.as_os_str().is_empty()) {
            let from = lowers[*topmost].join(&path);
            copy_properties(&from, &into.join(&path)).map_err(|source| CopyError { path: path.clone(), source })?;
        }
        path.pop();
        levels.pop();
    }
    Ok(())
}

/// A directory on the way.
struct Level {
    /// Layers, the topmost first.
    shown_in: Vec<usize>,
    /// Directories in it that were not looked at, and the layers that show them.
    left: Vec<(OsString, Vec<usize>)>,
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
    /// Entries that may follow.
    left: usize,
}

impl Copy<'_> {
    /// Copies what is in a directory; answers the directories in it, and which layers show them.
    fn directory(&mut self, path: &Path, shown_in: &[usize]) -> Result<Vec<(OsString, Vec<usize>)>, CopyError> {
        let mut names: BTreeMap<OsString, Shown> = BTreeMap::new();
        for layer in shown_in {
            let folder = self.lowers[*layer].join(path);
            let fail = |source| CopyError { path: path.to_owned(), source };
            for entry in fs::read_dir(&folder).map_err(fail)? {
                let name = entry.map_err(fail)?.file_name();
                self.left = self.left.checked_sub(1).ok_or_else(|| fail(io::Error::other("too many files")))?;
                let inside = path.join(&name);
                let shown = names.remove(&name);
                let shown = self.entry(&inside, *layer, shown).map_err(|source| CopyError { path: inside, source })?;
                names.insert(name, shown);
            }
        }
        let folders = names.into_iter().filter_map(|(name, shown)| match shown {
            Shown::Decided => None,
            Shown::Directory(layers) | Shown::Closed(layers) => Some((name, layers)),
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
                DirBuilder::new().mode(0o700).create(self.into.join(path))?;
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
            if self.linked.len() < MAX_LINKED {
                self.linked.insert(inode, to.clone());
            }
        }
        if facts.is_file() {
            let mut source = File::open(from)?;
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&to)?;
            // By `copy_file_range`: disks that can share the data, do.
            io::copy(&mut source, &mut file)?;
            return Ok(settle::copy(&source, &file)?);
        }
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
            copy_access(from, &to)?;
        }
        let times = settle::times(facts.mtime(), facts.mtime_nsec());
        Ok(utimensat(CWD, &to, &times, AtFlags::SYMLINK_NOFOLLOW)?)
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

/// Who may use a pipe or a device: unpacked into a directory that says so, it has inherited a list of its own.
fn copy_access(from: &Path, to: &Path) -> io::Result<()> {
    let mut value = vec![0; MAX_XATTR];
    match lgetxattr(from, ACCESS, &mut value[..]) {
        Ok(length) => Ok(lsetxattr(to, ACCESS, &value[..length], XattrFlags::empty())?),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Of a directory.
fn copy_properties(from: &Path, to: &Path) -> io::Result<()> {
    Ok(settle::copy(&File::open(from)?, &File::open(to)?)?)
}
