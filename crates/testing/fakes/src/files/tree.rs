//! Inodes and names.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use ports::host::{FileKind, HUGETLBFS_MAGIC, TMPFS_MAGIC};
use tokio::time::Instant;

/// What `statfs` says of a disk.
pub(super) const EXT4_MAGIC: i64 = 0xef53;
/// Links that a path may lead through.
const MOST_LINKS: u32 = 40;
/// As deep as most paths are.
const DEPTH: usize = 16;
/// Longest name, in bytes.
const NAME_MAX: usize = 255;

/// The root directory.
pub(super) const ROOT: u64 = 1;

/// The system's words for what goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Errno {
    /// No such file or directory.
    NoEnt = 2,
    /// Input/output error.
    Io = 5,
    /// Permission denied.
    Access = 13,
    /// Device or resource busy.
    Busy = 16,
    /// File exists.
    Exist = 17,
    /// Invalid cross-device link.
    XDev = 18,
    /// Not a directory.
    NotDir = 20,
    /// Is a directory.
    IsDir = 21,
    /// Invalid argument.
    Inval = 22,
    /// No space left on device.
    NoSpc = 28,
    /// Read-only file system.
    RoFs = 30,
    /// File name too long.
    NameTooLong = 36,
    /// Directory not empty.
    NotEmpty = 39,
    /// Too many levels of symbolic links.
    Loop = 40,
}

impl From<Errno> for io::Error {
    fn from(e: Errno) -> Self {
        io::Error::from_raw_os_error(e as i32)
    }
}

pub(super) type Res<T> = Result<T, Errno>;

#[derive(Clone, Debug)]
pub(super) enum Kind {
    File(Vec<u8>),
    Dir(BTreeMap<String, u64>),
    Link(PathBuf),
    Special(FileKind),
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Device; another one than its parent's: something is mounted here.
    pub(super) dev: u64,
    /// Names it has.
    pub(super) links: u64,
    /// When content was last written that may not be on the disk yet.
    pub(super) written: Option<Instant>,
}

impl Node {
    pub(super) fn file_kind(&self) -> FileKind {
        match &self.kind {
            Kind::File(_) => FileKind::File,
            Kind::Dir(_) => FileKind::Dir,
            Kind::Link(_) => FileKind::Symlink,
            Kind::Special(kind) => *kind,
        }
    }

    pub(super) fn size(&self) -> u64 {
        match &self.kind {
            Kind::File(bytes) => bytes.len() as u64,
            Kind::Link(target) => target.as_os_str().len() as u64,
            Kind::Dir(_) => 4096,
            Kind::Special(_) => 0,
        }
    }
}

/// Where a path leads.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) parent: u64,
    /// Last part; `None` of a path that ends in `..`, or has no part.
    pub(super) name: Option<String>,
    pub(super) node: Option<u64>,
}

/// How far a walk got.
enum Walked {
    To(Found),
    /// To a link; the path from here on.
    Link(String),
}

/// A path from its first part on that says something.
fn without_dots(mut path: &str) -> &str {
    loop {
        path = path.trim_start_matches('/');
        match path.strip_prefix('.') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => path = rest,
            _ => return path,
        }
    }
}

/// Something that is mounted on a directory.
#[derive(Clone, Debug)]
pub(super) struct Mounted {
    /// Which file system, as `statfs` says it.
    pub(super) magic: i64,
    pub(super) at: PathBuf,
    /// Most bytes of a tmpfs.
    pub(super) size_bytes: Option<u64>,
    ino: u64,
    /// Device of the directory below.
    over: u64,
}

impl Mounted {
    pub(super) fn is_memory(&self) -> bool {
        matches!(self.magic, TMPFS_MAGIC | HUGETLBFS_MAGIC)
    }
}

#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: BTreeMap<u64, Node>,
    next: u64,
    /// By their devices.
    pub(super) mounted: BTreeMap<u64, Mounted>,
    devices: u64,
    /// How often a name or a mount went.
    pub(super) losses: u64,
}

impl Default for Tree {
    fn default() -> Self {
        let mut tree = Tree { nodes: BTreeMap::new(), next: ROOT, mounted: BTreeMap::new(), devices: 0, losses: 0 };
        tree.make(Kind::Dir(BTreeMap::new()), 0o755, 1);
        tree
    }
}

impl Tree {
    fn make(&mut self, kind: Kind, mode: u32, dev: u64) -> u64 {
        let ino = self.next;
        self.next += 1;
        self.nodes.insert(ino, Node { kind, mode, uid: 0, gid: 0, dev, links: 1, written: None });
        ino
    }

    pub(super) fn node(&self, ino: u64) -> &Node {
        &self.nodes[&ino]
    }

    pub(super) fn node_mut(&mut self, ino: u64) -> &mut Node {
        self.nodes.get_mut(&ino).expect("an inode that was just looked up")
    }

    pub(super) fn dir(&self, ino: u64) -> Res<&BTreeMap<String, u64>> {
        match &self.node(ino).kind {
            Kind::Dir(entries) => Ok(entries),
            _ => Err(Errno::NotDir),
        }
    }

    pub(super) fn dir_mut(&mut self, ino: u64) -> Res<&mut BTreeMap<String, u64>> {
        match &mut self.node_mut(ino).kind {
            Kind::Dir(entries) => Ok(entries),
            _ => Err(Errno::NotDir),
        }
    }

    /// Walks an absolute path; its last part need not be there.
    pub(super) fn find(&self, path: &Path, follow: bool) -> Res<Found> {
        let mut at = Vec::with_capacity(DEPTH);
        at.push(ROOT);
        self.walk(at, path, follow, false)
    }

    /// As [`Tree::find`], for what must be there.
    pub(super) fn get(&self, path: &Path, follow: bool) -> Res<u64> {
        self.find(path, follow)?.node.ok_or(Errno::NoEnt)
    }

    /// Walks from the last directory of `at`. `beneath`: no step and no link may lead out of the first of them.
    pub(super) fn walk(&self, mut at: Vec<u64>, path: &Path, follow: bool, beneath: bool) -> Res<Found> {
        let mut links = 0;
        let mut left = Cow::from(path.to_str().ok_or(Errno::Inval)?);
        loop {
            let next = match self.walk_to_link(&mut at, &left, follow, beneath)? {
                Walked::To(found) => return Ok(found),
                Walked::Link(next) => next,
            };
            links += 1;
            if links > MOST_LINKS {
                return Err(Errno::Loop);
            }
            left = next.into();
        }
    }

    /// Walks until a link that has to be followed.
    fn walk_to_link(&self, at: &mut Vec<u64>, path: &str, follow: bool, beneath: bool) -> Res<Walked> {
        if path.starts_with('/') {
            if beneath {
                return Err(Errno::XDev);
            }
            at.clear();
            at.push(ROOT);
        }
        let mut here = *at.last().unwrap_or(&ROOT);
        let mut dir = self.node(here);
        let mut left = without_dots(path);
        while !left.is_empty() {
            // Names are short: a look at each byte is done before a search for one has begun.
            let end = left.bytes().position(|byte| byte == b'/').unwrap_or(left.len());
            let (name, rest) = left.split_at(end);
            left = without_dots(rest);
            let last = left.is_empty();
            if name == ".." {
                if at.len() > 1 {
                    at.pop();
                } else if beneath {
                    return Err(Errno::XDev);
                }
                here = *at.last().unwrap_or(&ROOT);
                dir = self.node(here);
                continue;
            }
            let Kind::Dir(entries) = &dir.kind else { return Err(Errno::NotDir) };
            let Some(&ino) = entries.get(name) else {
                let found = Found { parent: here, name: Some(name.to_owned()), node: None };
                return if last { Ok(Walked::To(found)) } else { Err(Errno::NoEnt) };
            };
            let node = self.node(ino);
            match &node.kind {
                Kind::Link(target) if follow || !last => {
                    let target = target.to_str().ok_or(Errno::Inval)?;
                    return Ok(Walked::Link(if last { target.to_owned() } else { format!("{target}/{left}") }));
                }
                _ if last => {
                    return Ok(Walked::To(Found { parent: here, name: Some(name.to_owned()), node: Some(ino) }));
                }
                Kind::Dir(_) => {
                    at.push(ino);
                    (here, dir) = (ino, node);
                }
                _ => return Err(Errno::NotDir),
            }
        }
        Ok(Walked::To(Found { parent: here, name: None, node: Some(here) }))
    }

    /// Gives a new inode its name.
    pub(super) fn add(&mut self, parent: u64, name: Option<String>, kind: Kind, mode: u32) -> Res<u64> {
        let name = name.ok_or(Errno::Exist)?;
        if name.len() > NAME_MAX {
            return Err(Errno::NameTooLong);
        }
        if self.dir(parent)?.contains_key(&name) {
            return Err(Errno::Exist);
        }
        let dev = self.node(parent).dev;
        let ino = self.make(kind, mode, dev);
        self.dir_mut(parent)?.insert(name, ino);
        Ok(ino)
    }

    /// Takes a name away, and the inode when that was its last.
    pub(super) fn unlink(&mut self, parent: u64, name: &str) -> Res<()> {
        let ino = self.dir_mut(parent)?.remove(name).ok_or(Errno::NoEnt)?;
        self.losses += 1;
        let node = self.node_mut(ino);
        node.links -= 1;
        if node.links == 0 {
            self.nodes.remove(&ino);
        }
        Ok(())
    }

    pub(super) fn mount(&mut self, target: &Path, magic: i64, size_bytes: Option<u64>) -> Res<()> {
        let ino = self.get(target, true)?;
        self.devices += 1;
        let (over, dev) = (self.node(ino).dev, 1 + self.devices);
        self.move_device(ino, over, dev);
        self.mounted.insert(dev, Mounted { magic, at: target.to_owned(), size_bytes, ino, over });
        Ok(())
    }

    /// What is mounted right on this path, with its device.
    pub(super) fn mounted_on(&self, target: &Path) -> Option<(u64, &Mounted)> {
        let ino = self.get(target, false).ok()?;
        let dev = self.node(ino).dev;
        self.mounted.get(&dev).filter(|m| m.ino == ino).map(|m| (dev, m))
    }

    pub(super) fn unmount(&mut self, target: &Path) -> Res<()> {
        while let Some(dev) = self.mounted_on(target).map(|(dev, _)| dev) {
            let Some(gone) = self.mounted.remove(&dev) else { break };
            self.losses += 1;
            if gone.is_memory() {
                // What was in memory is gone with its mount.
                self.clear(gone.ino)?;
            }
            self.move_device(gone.ino, dev, gone.over);
        }
        Ok(())
    }

    /// Moves what is at `ino` and below from one device to another.
    fn move_device(&mut self, ino: u64, from: u64, to: u64) {
        if self.node(ino).dev != from {
            return;
        }
        self.node_mut(ino).dev = to;
        let below: Vec<u64> = self.dir(ino).map(|entries| entries.values().copied().collect()).unwrap_or_default();
        below.into_iter().for_each(|ino| self.move_device(ino, from, to));
    }

    /// Empties a directory, as far as it is on one device; the first failure is the answer.
    pub(super) fn clear(&mut self, dir: u64) -> Res<()> {
        let (dev, mut first) = (self.node(dir).dev, Ok(()));
        for (name, ino) in self.dir(dir)?.clone() {
            let gone = match self.node(ino).kind {
                Kind::Dir(_) if self.node(ino).dev != dev => Err(Errno::Busy),
                Kind::Dir(_) => self.clear(ino).and_then(|()| self.unlink(dir, &name)),
                _ => self.unlink(dir, &name),
            };
            first = first.and(gone);
        }
        first
    }
}
