//! Files and directories.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use model::Timestamp;
use ports::host::{
    DirEntry, FileEnd, FileKind, FileStat, FsStat, GroupGrant, HostError, HostFs, HostResult, Links, Met,
};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;

use crate::At;

mod descend;
mod group;
mod open;
mod remove;

#[cfg(test)]
mod tests;

pub use open::{open_file_or_folder, open_regular};

/// A buffer with less room than this is not read into at once.
const MIN_ROOM: usize = 32;
/// Makes names of temporary files differ within this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The machine's own files.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinuxFs;

impl HostFs for LinuxFs {
    fn create_dir(&self, path: &Path, mode: u32) -> HostResult<()> {
        make_dirs(path, mode)
    }

    fn create_dir_within(&self, base: &Path, relative: &Path, mode: u32) -> HostResult<()> {
        let mut done = PathBuf::new();
        for part in checked_relative(base, relative)? {
            let parent = open_beneath(base, &done, OFlags::RDONLY | OFlags::DIRECTORY)?;
            done.push(part);
            let whole = base.join(&done);
            match rustix::fs::mkdirat(&parent, part, Mode::RWXU) {
                Ok(()) => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let made = rustix::fs::openat(&parent, part, flags, Mode::empty()).at("open", &whole)?;
                    rustix::fs::fchmod(&made, mode.into()).at("chmod", &whole)?;
                }
                Err(Errno::EXIST) => {}
                Err(e) => return Err(HostError::new("mkdir", whole, e)),
            }
        }
        open_beneath(base, &done, OFlags::PATH | OFlags::DIRECTORY).map(drop)
    }

    fn write_file(&self, path: &Path, content: &[u8], mode: u32) -> HostResult<()> {
        replace(path, content, mode)
    }

    fn write_file_synced(&self, path: &Path, content: &[u8], mode: u32) -> HostResult<()> {
        replace_synced(path, content, mode, &fs::File::sync_all)
    }

    fn sync_file(&self, path: &Path) -> HostResult<()> {
        sync(path, &fs::File::sync_all)?;
        sync_name(path, &fs::File::sync_all)
    }

    fn sync_dir(&self, path: &Path) -> HostResult<()> {
        sync(path, &fs::File::sync_all)
    }

    fn create_file(&self, path: &Path, mode: u32) -> HostResult<()> {
        write_new(path, &[], mode).map(drop)
    }

    fn read_file(&self, path: &Path, max_bytes: u64) -> HostResult<Vec<u8>> {
        read_whole(open_regular(path, Links::Follow).at("open", path)?, path, max_bytes)
    }

    fn read_within(&self, base: &Path, relative: &Path, max_bytes: u64) -> HostResult<Vec<u8>> {
        let whole = base.join(relative);
        let there = open_beneath(base, relative, OFlags::PATH)?;
        read_whole(open::open_referred(there).at("open", &whole)?, &whole, max_bytes)
    }

    fn read_end(&self, path: &Path, max_bytes: u64, links: Links) -> HostResult<FileEnd> {
        let mut file = open_regular(path, links).at("open", path)?;
        let cut = file.metadata().at("stat", path)?.len() > max_bytes;
        if cut {
            file.seek(SeekFrom::End(-i64::try_from(max_bytes).unwrap_or(i64::MAX))).at("seek", path)?;
        }
        let mut bytes = Vec::new();
        // Whoever goes on writing does not make it longer.
        file.take(max_bytes).read_to_end(&mut bytes).at("read", path)?;
        Ok(FileEnd { bytes, cut })
    }

    fn list_dir(&self, path: &Path) -> HostResult<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).at("readdir", path)? {
            let entry = entry.at("readdir", path)?;
            let is_dir = entry.file_type().at("stat", entry.path())?.is_dir();
            if let Ok(name) = entry.file_name().into_string() {
                entries.push(DirEntry { name, is_dir });
            }
        }
        entries.sort();
        Ok(entries)
    }

    fn remove_file(&self, path: &Path) -> HostResult<()> {
        absent_is_fine(fs::remove_file(path)).at("unlink", path)
    }

    fn remove_empty_dir(&self, path: &Path) -> HostResult<()> {
        absent_is_fine(fs::remove_dir(path)).at("rmdir", path)
    }

    fn remove_tree(&self, path: &Path) -> HostResult<()> {
        remove::remove_tree(path)
    }

    fn symlink(&self, target: &Path, link: &Path) -> HostResult<()> {
        std::os::unix::fs::symlink(target, link).at("symlink", link)
    }

    fn read_link(&self, path: &Path) -> HostResult<PathBuf> {
        fs::read_link(path).at("readlink", path)
    }

    fn rename(&self, from: &Path, to: &Path) -> HostResult<()> {
        fs::rename(from, to).at("rename", from)
    }

    fn set_owner(&self, path: &Path, uid: Option<u32>, gid: Option<u32>) -> HostResult<()> {
        let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
        rustix::fs::chownat(CWD, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW).at("chown", path)
    }

    fn set_mode(&self, path: &Path, mode: u32) -> HostResult<()> {
        // By descriptor: a link that somebody puts there meanwhile leads to nowhere else.
        let at = open::reference(path, Links::Refuse).at("open", path)?;
        fs::set_permissions(open::by_descriptor(&at), fs::Permissions::from_mode(mode)).at("chmod", path)
    }

    fn give_group(&self, path: &Path, links: Links, grant: GroupGrant, met: &Met<'_>) -> HostResult<bool> {
        group::give_group(path, links, grant, met)
    }

    fn stat(&self, path: &Path) -> HostResult<Option<FileStat>> {
        stat_of(fs::metadata(path), path)
    }

    fn stat_link(&self, path: &Path) -> HostResult<Option<FileStat>> {
        stat_of(fs::symlink_metadata(path), path)
    }

    fn stat_fs(&self, path: &Path) -> HostResult<FsStat> {
        let s = rustix::fs::statfs(path).at("statfs", path)?;
        let unit = u64::try_from(s.f_bsize).unwrap_or(0);
        #[allow(clippy::useless_conversion, reason = "the width of these fields differs between machines")]
        Ok(FsStat {
            magic: i64::from(s.f_type),
            total_bytes: unit.saturating_mul(s.f_blocks.into()),
            available_bytes: unit.saturating_mul(s.f_bavail.into()),
            total_inodes: s.f_files.into(),
            free_inodes: s.f_ffree.into(),
        })
    }
}

fn stat_of(read: io::Result<fs::Metadata>, path: &Path) -> HostResult<Option<FileStat>> {
    let m = match read {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(None),
        other => other.at("stat", path)?,
    };
    Ok(Some(FileStat {
        kind: kind_of(&m),
        mode: m.mode() & 0o7777,
        uid: m.uid(),
        gid: m.gid(),
        size: m.size(),
        dev: m.dev(),
        ino: m.ino(),
        links: m.nlink(),
        modified: Timestamp(m.mtime().saturating_mul(1_000_000_000).saturating_add(m.mtime_nsec())),
    }))
}

fn kind_of(m: &fs::Metadata) -> FileKind {
    use std::os::unix::fs::FileTypeExt;
    let t = m.file_type();
    if t.is_dir() {
        FileKind::Dir
    } else if t.is_symlink() {
        FileKind::Symlink
    } else if t.is_socket() {
        FileKind::Socket
    } else if t.is_char_device() {
        FileKind::CharDevice
    } else if t.is_block_device() {
        FileKind::BlockDevice
    } else if t.is_fifo() {
        FileKind::Fifo
    } else {
        FileKind::File
    }
}

fn absent_is_fine(r: io::Result<()>) -> io::Result<()> {
    match r {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// How a file or directory is brought to the disk.
type Sync<'a> = &'a dyn Fn(&fs::File) -> io::Result<()>;

fn replace(path: &Path, content: &[u8], mode: u32) -> HostResult<()> {
    let temp = beside(path);
    let written = write_new(&temp, content, mode).and_then(|_| fs::rename(&temp, path).at("rename", path));
    or_take_away(&temp, written)
}

/// The content is on the disk before the name leads to it; the name is on the disk when this answers.
fn replace_synced(path: &Path, content: &[u8], mode: u32, sync: Sync<'_>) -> HostResult<()> {
    let temp = beside(path);
    let written = write_new(&temp, content, mode)
        .and_then(|file| sync(&file).at("fsync", &temp))
        .and_then(|()| fs::rename(&temp, path).at("rename", path));
    or_take_away(&temp, written)?;
    sync_name(path, sync)
}

fn sync_name(path: &Path, with: Sync<'_>) -> HostResult<()> {
    path.parent().map_or(Ok(()), |dir| sync(dir, with))
}

fn sync(path: &Path, with: Sync<'_>) -> HostResult<()> {
    let opened = fs::File::open(path).at("open", path)?;
    with(&opened).at("fsync", path)
}

/// A name for what will take the place of `path`, free of leftovers.
fn beside(path: &Path) -> PathBuf {
    // Cut, so that a name of full length leaves room for the rest.
    let name: String = path.file_name().and_then(|n| n.to_str()).unwrap_or("file").chars().take(32).collect();
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let temp = path.with_file_name(format!(".{name}.{}.{n}.tmp", std::process::id()));
    let _leftover_of_an_earlier_process = fs::remove_file(&temp);
    temp
}

fn or_take_away(temp: &Path, written: HostResult<()>) -> HostResult<()> {
    if written.is_err() {
        let _best_effort = fs::remove_file(temp);
    }
    written
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> HostResult<fs::File> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).at("create", path)?;
    file.write_all(content).at("write", path)?;
    // Not at creation: the umask would take bits away.
    rustix::fs::fchmod(&file, mode.into()).at("chmod", path)?;
    Ok(file)
}

/// Makes a directory and its missing parents, each new one with exactly `mode`.
pub(crate) fn make_dirs(path: &Path, mode: u32) -> HostResult<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_dirs(parent, mode)?;
    }
    match fs::create_dir(path) {
        Ok(()) => fs::set_permissions(path, fs::Permissions::from_mode(mode)).at("chmod", path),
        // Somebody was faster; a file in the way is an error.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(e) => Err(HostError::new("mkdir", path, e)),
    }
}

/// All of a file; one that is longer than that is refused, not cut.
fn read_whole(file: fs::File, path: &Path, max_bytes: u64) -> HostResult<Vec<u8>> {
    // Room for what it has now, and for finding its end: two reads, where a growing buffer takes many.
    let has = file.metadata().at("stat", path)?.len().min(max_bytes);
    let mut content = Vec::with_capacity(usize::try_from(has).unwrap_or(0).saturating_add(MIN_ROOM));
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut content).at("read", path)?;
    if content.len() as u64 > max_bytes {
        let text = format!("longer than {max_bytes} bytes");
        return Err(HostError::new("read", path, io::Error::new(io::ErrorKind::InvalidData, text)));
    }
    Ok(content)
}

/// The components of a relative path; anything that could leave `base` is refused.
fn checked_relative<'a>(base: &Path, relative: &'a Path) -> HostResult<Vec<&'a std::ffi::OsStr>> {
    let refuse = || HostError::new("open", base.join(relative), io::ErrorKind::InvalidInput);
    if relative.is_absolute() {
        return Err(refuse());
    }
    let mut parts = Vec::new();
    for part in relative.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            _ => return Err(refuse()),
        }
    }
    Ok(parts)
}

/// Opens `base/relative`. A symlink on the way may point to another place inside of `base`, never out of it.
pub(crate) fn open_beneath(base: &Path, relative: &Path, flags: OFlags) -> HostResult<OwnedFd> {
    let parts = checked_relative(base, relative)?;
    let whole = base.join(relative);
    let flags = flags | OFlags::CLOEXEC;
    let dir = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(base, dir, Mode::empty()).at("open", base)?;
    let inside: PathBuf = if parts.is_empty() { ".".into() } else { parts.iter().collect() };
    // A rename that races with the look-up makes the kernel ask for another try.
    for _ in 0..16 {
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&root, &inside, flags, Mode::empty(), how) {
            Err(Errno::AGAIN) => {}
            Err(Errno::NOSYS) => return open_by_steps(root, &parts, flags).at("open", whole),
            other => return other.at("open", whole),
        }
    }
    Err(HostError::new("open", whole, Errno::AGAIN))
}

/// For kernels before 5.6: one component at a time, and no symlink at all.
fn open_by_steps(root: OwnedFd, parts: &[&std::ffi::OsStr], flags: OFlags) -> Result<OwnedFd, Errno> {
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Some((last, above)) = parts.split_last() else {
        return rustix::fs::openat(&root, ".", flags, Mode::empty());
    };
    let mut at = root;
    for part in above {
        at = rustix::fs::openat(&at, *part, step, Mode::empty())?;
    }
    rustix::fs::openat(&at, *last, flags | OFlags::NOFOLLOW, Mode::empty())
}
