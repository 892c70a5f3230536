//! Entries become files.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags, chownat, fchmod, fchown,
    fsetxattr, futimens, linkat, makedev, mkdirat, mknodat, openat, symlinkat, utimensat,
};
use rustix::io::Errno;

use crate::archive::{Archive, Entry, Kind};
use crate::error::UnpackError;
use crate::limits::Limits;
use crate::name::{self, Base};
use crate::pax::Time;
use crate::tree::{DIRECTORY, Directory, Tree, is_whiteout, remove, split};

/// Marks a directory that hides what lower layers have in it.
pub(crate) const OPAQUE: &str = "trusted.overlay.opaque";
const PAGE: u64 = 4096;
/// Bytes of a file written at once.
const CHUNK: usize = 128 << 10;

/// What a layer came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// SHA-256 of the archive without compression: the layer's diff id.
    pub diff_id: [u8; 32],
    /// Bytes of the archive without compression.
    pub archive_bytes: u64,
    /// About what the files take of a disk, bytes: each rounded up to pages.
    pub disk_bytes: u64,
    /// Files, directories and the like that were made.
    pub inodes: u64,
    /// Directories that the archive does not list but has entries in, relative to the root: made as 0755 of root, until
    /// [`settle`](crate::settle) gives them what the layers below say.
    pub implied: Vec<Vec<u8>>,
    /// Extended attributes that were left out: a label of the machine that built the image, for one.
    pub skipped_xattrs: u64,
}

/// A layer that grows.
pub(crate) struct Layer {
    tree: Tree,
    /// Times of directories, set at the end: each new entry changes its directory's.
    times: Vec<(Vec<u8>, Time)>,
    made: Unpacked,
    buffer: Vec<u8>,
}

impl Layer {
    pub(crate) fn new(root: &Path, limits: &Limits) -> Result<Self, UnpackError> {
        let root_name = root.as_os_str().as_encoded_bytes();
        let tree = Tree::open(root, limits.depth).map_err(|e| UnpackError::disk("cannot open", root_name, e))?;
        let made = Unpacked {
            diff_id: [0; 32],
            archive_bytes: 0,
            disk_bytes: PAGE,
            inodes: 1,
            implied: Vec::new(),
            skipped_xattrs: 0,
        };
        Ok(Self { tree, times: Vec::new(), made, buffer: vec![0; CHUNK] })
    }

    /// Makes one entry.
    pub(crate) fn place<R: Read>(&mut self, entry: &Entry, data: &mut Archive<'_, R>) -> Result<(), UnpackError> {
        // Of the root itself nothing is taken, as in containerd: it is the container's, not the layer's.
        let Some((above, last)) = split(&entry.name, &entry.name)? else { return Ok(()) };
        let base = name::base(last).map_err(|why| UnpackError::entry(&entry.name, why))?;
        if base == Base::Meta {
            return Ok(());
        }
        let above = self.tree.parent(&above, &entry.name)?;
        let fail = |e| UnpackError::disk("cannot make", &entry.name, e);
        match base {
            Base::Opaque => hide(&above.fd).map_err(fail),
            Base::Whiteout(gone) => self.whiteout(&above, gone).map_err(fail),
            Base::Plain(base) => match entry.kind {
                Kind::File => self.file(&above, base, entry, data),
                Kind::Directory => self.directory(&above, base, entry),
                Kind::HardLink => self.hard_link(&above, base, entry),
                Kind::Symlink => {
                    self.anew(&above, base, |fd| symlinkat(entry.link.as_slice(), fd, base)).map_err(fail)?;
                    self.tree.changed();
                    self.finish_special(&above, base, entry).map_err(fail)
                }
                Kind::Character => self.node(&above, base, entry, FileType::CharacterDevice).map_err(fail),
                Kind::Block => self.node(&above, base, entry, FileType::BlockDevice).map_err(fail),
                Kind::Fifo => self.node(&above, base, entry, FileType::Fifo).map_err(fail),
            },
            Base::Meta => Ok(()),
        }
    }

    /// Sets what had to wait, and says what came of it.
    pub(crate) fn finish(mut self) -> Result<Unpacked, UnpackError> {
        for (path, time) in std::mem::take(&mut self.times) {
            match self.tree.at(&path).and_then(|fd| futimens(fd, &times(time))) {
                // Something else took its place.
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(e) => return Err(UnpackError::disk("cannot set the time of", &path, e)),
            }
        }
        self.made.implied = self.tree.implied.into_iter().collect();
        Ok(self.made)
    }

    /// Makes an entry where nothing is, else in the place of what is there.
    fn anew<T>(
        &mut self,
        above: &Directory,
        base: &[u8],
        make: impl Fn(&OwnedFd) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match make(&above.fd) {
            Err(Errno::EXIST) => {
                remove(&above.fd, base)?;
                self.tree.changed();
                self.tree.implied.remove(&above.path_of(base));
                make(&above.fd)
            }
            other => other,
        }
    }

    fn count(&mut self, bytes: u64) {
        self.made.inodes += 1;
        self.made.disk_bytes += bytes.div_ceil(PAGE) * PAGE;
    }

    fn file<R: Read>(
        &mut self,
        above: &Directory,
        base: &[u8],
        entry: &Entry,
        data: &mut Archive<'_, R>,
    ) -> Result<(), UnpackError> {
        let fail = |e| UnpackError::disk("cannot write", &entry.name, e);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let make = |fd: &OwnedFd| openat(fd, base, flags, Mode::from_raw_mode(0o600));
        let mut file = File::from(self.anew(above, base, make).map_err(fail)?);
        loop {
            let read = data.read(&mut self.buffer)?;
            if read == 0 {
                break;
            }
            let written = file.write_all(&self.buffer[..read]);
            written.map_err(|e| fail(Errno::from_io_error(&e).unwrap_or(Errno::IO)))?;
        }
        self.count(entry.size);
        self.finish_open(&file, entry).map_err(fail)?;
        futimens(&file, &times(entry.mtime)).map_err(fail)
    }

    fn directory(&mut self, above: &Directory, base: &[u8], entry: &Entry) -> Result<(), UnpackError> {
        let fail = |e| UnpackError::disk("cannot make", &entry.name, e);
        let covers = is_whiteout(&above.fd, base);
        let mode = Mode::from_raw_mode(0o700);
        let fd = match mkdirat(&above.fd, base, mode) {
            Ok(()) => {
                self.count(PAGE);
                openat(&above.fd, base, DIRECTORY, Mode::empty())
            }
            // One that is there gets this entry's properties.
            Err(Errno::EXIST) => match openat(&above.fd, base, DIRECTORY, Mode::empty()) {
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    self.anew(above, base, |fd| mkdirat(fd, base, mode)).map_err(fail)?;
                    self.count(PAGE);
                    openat(&above.fd, base, DIRECTORY, Mode::empty())
                }
                other => other,
            },
            Err(e) => Err(e),
        };
        let fd = fd.map_err(fail)?;
        self.finish_open(&fd, entry).map_err(fail)?;
        if covers {
            hide(&fd).map_err(fail)?;
        }
        let path = above.path_of(base);
        self.tree.implied.remove(&path);
        self.times.push((path, entry.mtime));
        Ok(())
    }

    fn hard_link(&mut self, above: &Directory, base: &[u8], entry: &Entry) -> Result<(), UnpackError> {
        let refused = |why: &str| UnpackError::entry(&entry.name, why);
        let Some((folder, target)) = split(&entry.link, &entry.name)? else {
            return Err(refused("a hard link to the root"));
        };
        let missing = |e| match e {
            Errno::NOENT => refused("a hard link to what the layer does not have"),
            Errno::PERM => refused("a hard link to what cannot have one"),
            e => UnpackError::disk("cannot link", &entry.name, e),
        };
        let from = self.tree.existing(&folder).map_err(missing)?;
        // A link to itself would take its own target away.
        let same = |fd: &OwnedFd, name: &[u8]| {
            rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW).map(|s| (s.st_dev, s.st_ino)).ok()
        };
        let target_is = same(&from, target);
        if target_is.is_some() && target_is == same(&above.fd, base) {
            return Ok(());
        }
        self.anew(above, base, |fd| linkat(&from, target, fd, base, AtFlags::empty())).map_err(missing)
    }

    fn node(&mut self, above: &Directory, base: &[u8], entry: &Entry, kind: FileType) -> Result<(), Errno> {
        let device = makedev(entry.device.0, entry.device.1);
        self.anew(above, base, |fd| mknodat(fd, base, kind, Mode::from_raw_mode(entry.mode), device))?;
        // Not what the umask left of it. A node that was just made is no link.
        rustix::fs::chmodat(&above.fd, base, Mode::from_raw_mode(entry.mode), AtFlags::empty())?;
        self.finish_special(above, base, entry)
    }

    fn whiteout(&mut self, above: &Directory, gone: &[u8]) -> Result<(), Errno> {
        let make = || mknodat(&above.fd, gone, FileType::CharacterDevice, Mode::empty(), 0);
        match make() {
            // The layer has one of its own, which stays; a directory hides what lower layers have in theirs.
            Err(Errno::EXIST) => match openat(&above.fd, gone, DIRECTORY, Mode::empty()) {
                Ok(own) => hide(&own),
                Err(Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => Ok(()),
                Err(e) => Err(e),
            },
            Ok(()) => {
                self.count(0);
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    /// Owner first, as a new owner takes set-user-id and capabilities away.
    fn finish_open(&mut self, fd: &impl AsFd, entry: &Entry) -> Result<(), Errno> {
        fchown(fd, Some(Uid::from_raw(entry.uid)), Some(Gid::from_raw(entry.gid)))?;
        fchmod(fd, Mode::from_raw_mode(entry.mode))?;
        for (key, value) in &entry.xattrs {
            match taken(key) {
                true => fsetxattr(fd, key.as_str(), value, XattrFlags::empty())?,
                false => self.made.skipped_xattrs += 1,
            }
        }
        Ok(())
    }

    fn finish_special(&mut self, above: &Directory, base: &[u8], entry: &Entry) -> Result<(), Errno> {
        self.count(0);
        self.made.skipped_xattrs += entry.xattrs.len() as u64;
        let (uid, gid) = (Uid::from_raw(entry.uid), Gid::from_raw(entry.gid));
        chownat(&above.fd, base, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        if entry.kind != Kind::Symlink {
            rustix::fs::chmodat(&above.fd, base, Mode::from_raw_mode(entry.mode), AtFlags::empty())?;
        }
        utimensat(&above.fd, base, &times(entry.mtime), AtFlags::SYMLINK_NOFOLLOW)
    }
}

fn hide(directory: &OwnedFd) -> Result<(), Errno> {
    // Of a directory that was opened to be read.
    fsetxattr(directory, OPAQUE, b"y", XattrFlags::empty())
}

/// Attributes that a layer may bring. Those of overlayfs would let it redirect a directory to anywhere; labels are the machine's own.
pub(crate) fn taken(key: &str) -> bool {
    let users = key.starts_with("user.") && !key.starts_with("user.overlay.");
    users || matches!(key, "security.capability" | "system.posix_acl_access" | "system.posix_acl_default")
}

/// Times before the epoch count as the epoch, as containerd has it.
fn times(time: Time) -> Timestamps {
    let at = match time.seconds < 0 {
        true => Timespec { tv_sec: 0, tv_nsec: 0 },
        false => Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds },
    };
    Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, last_modification: at }
}
