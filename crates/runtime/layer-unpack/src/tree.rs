//! Places beneath the root of a layer. The kernel resolves them; links in a path lead to places in the layer, as they will in a container.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, chmodat, mkdirat, openat, openat2, readlinkat, statat,
};
use rustix::io::Errno;

use crate::error::UnpackError;
use crate::name;

/// How a directory is opened that must not be a link.
pub(crate) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Links that one path may lead through, as the kernel has it.
const LINKS: usize = 40;
/// How often the kernel is asked again that saw a rename elsewhere meanwhile (`EAGAIN` of `openat2`).
const RETRIES: usize = 100;

/// An open directory of the layer.
pub(crate) struct Directory {
    pub(crate) fd: OwnedFd,
    /// Where it really is, relative to the root, however it was come by; empty: the root.
    pub(crate) path: Vec<u8>,
}

impl Directory {
    /// Where an entry of this directory is, relative to the root.
    pub(crate) fn path_of(&self, base: &[u8]) -> Vec<u8> {
        match self.path.is_empty() {
            true => base.to_vec(),
            false => [&self.path, &b"/"[..], base].concat(),
        }
    }
}

pub(crate) struct Tree {
    root: OwnedFd,
    /// The root's own path, as `/proc` has it.
    prefix: Vec<u8>,
    depth: usize,
    /// The directory that was asked for last: entries of one follow each other.
    last: Option<(Vec<u8>, Rc<Directory>)>,
    /// Directories that no entry has told of yet.
    pub(crate) implied: BTreeSet<Vec<u8>>,
}

impl Tree {
    pub(crate) fn open(root: &Path, depth: usize) -> Result<Self, Errno> {
        let root = openat(CWD, root, DIRECTORY, Mode::empty())?;
        let prefix = real_path(&root)?;
        Ok(Self { root, prefix, depth, last: None, implied: BTreeSet::new() })
    }

    /// Forgets what it has open: something was moved or taken away.
    pub(crate) fn changed(&mut self) {
        self.last = None;
    }

    /// The directory of an entry, made where it is missing.
    pub(crate) fn parent(&mut self, parts: &[&[u8]], entry: &[u8]) -> Result<Rc<Directory>, UnpackError> {
        let asked = parts.join(&b'/');
        if let Some((_, known)) = self.last.as_ref().filter(|(last, _)| *last == asked) {
            return Ok(known.clone());
        }
        let found = Rc::new(self.find(&asked, entry)?);
        self.last = Some((asked, found.clone()));
        Ok(found)
    }

    /// Where an existing entry is: its directory, for hard links.
    pub(crate) fn existing(&self, parts: &[&[u8]]) -> Result<OwnedFd, Errno> {
        self.resolve(&parts.join(&b'/'))
    }

    /// A directory by its real path, for what is done to it at the end.
    pub(crate) fn at(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let strict = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let path = if path.is_empty() { b"." } else { path };
        retried(|| openat2(&self.root, path, DIRECTORY, Mode::empty(), strict))
    }

    fn resolve(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = if path.is_empty() { b"." } else { path };
        retried(|| openat2(&self.root, path, flags, Mode::empty(), inside))
    }

    fn find(&mut self, asked: &[u8], entry: &[u8]) -> Result<Directory, UnpackError> {
        let fd = match self.resolve(asked) {
            Err(Errno::NOENT) => self.make_all(asked, entry)?,
            other => other.map_err(|e| UnpackError::disk("cannot open the directory of", entry, e))?,
        };
        let path = real_path(&fd).map_err(|e| UnpackError::disk("cannot find the directory of", entry, e))?;
        let path = path.strip_prefix(self.prefix.as_slice()).map(|p| p.strip_prefix(b"/").unwrap_or(p).to_vec());
        let path = path.ok_or_else(|| UnpackError::entry(entry, "its path leads out of the layer"))?;
        let depth = path.split(|b| *b == b'/').count();
        if depth >= self.depth {
            return Err(UnpackError::entry(entry, format!("it lies more than {} directories deep", self.depth)));
        }
        Ok(Directory { fd, path })
    }

    /// Makes what is missing of a path, one part after the other. A link that leads to nowhere yet is followed to where that would be.
    fn make_all(&mut self, asked: &[u8], entry: &[u8]) -> Result<OwnedFd, UnpackError> {
        let fail = |e| UnpackError::disk("cannot make the directory of", entry, e);
        let mut path: Vec<Vec<u8>> = asked.split(|b| *b == b'/').map(<[u8]>::to_vec).collect();
        let mut links = 0;
        let mut have = 0;
        while have < path.len() {
            let above = self.resolve(&path[..have].join(&b'/')).map_err(fail)?;
            let base = path[have].clone();
            match mkdirat(&above, &base, Mode::from_raw_mode(0o755)) {
                Ok(()) => {
                    // Whatever the umask is. It was just made, so it is no link.
                    chmodat(&above, &base, Mode::from_raw_mode(0o755), AtFlags::empty()).map_err(fail)?;
                    let made = Directory { path: self.inside(&above).map_err(fail)?, fd: above };
                    self.implied.insert(made.path_of(&base));
                    have += 1;
                }
                Err(Errno::EXIST) if self.resolve(&path[..=have].join(&b'/')).is_ok() => have += 1,
                Err(Errno::EXIST) => {
                    links += 1;
                    let target = readlinkat(&above, &base, Vec::new()).map_err(|_| fail(Errno::NOTDIR))?;
                    if links > LINKS {
                        return Err(fail(Errno::LOOP));
                    }
                    path = followed(&path, have, target.as_bytes());
                    have = 0;
                }
                Err(e) => return Err(fail(e)),
            }
        }
        self.resolve(&path.join(&b'/')).map_err(fail)
    }

    fn inside(&self, fd: &OwnedFd) -> Result<Vec<u8>, Errno> {
        let path = real_path(fd)?;
        let inner = path.strip_prefix(self.prefix.as_slice()).ok_or(Errno::XDEV)?;
        Ok(inner.strip_prefix(b"/").unwrap_or(inner).to_vec())
    }
}

/// A path whose part `at` is a link to `target`, with the target in its place; `..` ends at the root.
fn followed(path: &[Vec<u8>], at: usize, target: &[u8]) -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = if target.starts_with(b"/") { Vec::new() } else { path[..at].to_vec() };
    let rest = path[at + 1..].iter().map(Vec::as_slice);
    for part in target.split(|b| *b == b'/').chain(rest).filter(|p| !p.is_empty() && *p != b".") {
        match part {
            b".." => drop(out.pop()),
            part => out.push(part.to_vec()),
        }
    }
    out
}

fn retried<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut tries = 0;
    loop {
        match call() {
            Err(Errno::AGAIN) if tries < RETRIES => tries += 1,
            other => return other,
        }
    }
}

/// Where an open directory is.
fn real_path(fd: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    Ok(readlinkat(CWD, link, Vec::new())?.into_bytes())
}

/// Takes an entry away, with all that is in it.
pub(crate) fn remove(above: &OwnedFd, base: &[u8]) -> Result<(), Errno> {
    match rustix::fs::unlinkat(above, base, AtFlags::empty()) {
        Err(Errno::ISDIR) => {
            use std::os::unix::ffi::OsStrExt;
            let folder = Path::new("/proc/self/fd").join(above.as_raw_fd().to_string());
            // Follows no link below; as deep as `Limits::depth` allows.
            let gone = std::fs::remove_dir_all(folder.join(std::ffi::OsStr::from_bytes(base)));
            gone.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))
        }
        other => other,
    }
}

/// Whether a name stands for a whiteout that was made before.
pub(crate) fn is_whiteout(above: &OwnedFd, base: &[u8]) -> bool {
    statat(above, base, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::CharacterDevice && s.st_rdev == 0)
}

/// The parts of a directory's name, and the last part.
type Split<'a> = (Vec<&'a [u8]>, &'a [u8]);

/// `None`: the name is the root's.
pub(crate) fn split<'a>(text: &'a [u8], entry: &[u8]) -> Result<Option<Split<'a>>, UnpackError> {
    let mut parts = name::parts(text).map_err(|why| UnpackError::entry(entry, why))?;
    Ok(parts.pop().map(|base| (parts, base)))
}
