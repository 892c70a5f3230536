//! A file system in memory: links, modes, owners; and what disks do to those who rely on them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::Timestamp;
use ports::host::{
    DirEntry, FileEnd, FileKind, FileStat, FsStat, GroupGrant, HostError, HostFs, HostResult, Links, Met, ProgramEnd,
};
use ports::log::Compress;
use tokio::time::Instant;

mod folder;
mod group;
mod mounts;
mod stats;
mod tree;

pub use folder::Folder;
pub use group::give_group_by_path;
pub use tree::Errno;
use tree::{EXT4_MAGIC, Found, Kind, Res, Tree};

/// Content that is older has been written back to the disk.
const WRITE_BACK: Duration = Duration::from_secs(30);
/// No such device or address: what the system says of opening a socket.
const ENXIO: i32 = 6;
/// Size of the disk, in bytes.
const DISK: u64 = 100 << 30;

/// What a path does from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTrouble {
    /// Every call fails so.
    Fail(Errno),
    /// Calls that would change something fail so.
    FailWrites(Errno),
    /// Calls of this operation (`mkdir`, `remove`, `mount`, ...) fail so.
    FailCalls(&'static str, Errno),
    /// Calls do not return until the trouble ends; in simulated time never.
    Hang,
}

/// What programs of the host do, and files of the kernel's that are written to.
type Program = Arc<dyn Fn(&MemFs, &str) -> Option<ProgramEnd> + Send + Sync>;

#[derive(Default)]
struct Programs {
    double: Option<Program>,
    calls: Vec<String>,
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.calls.fmt(f)
    }
}

#[derive(Debug, Default)]
struct State {
    tree: Tree,
    troubles: BTreeMap<PathBuf, FileTrouble>,
    hanging: usize,
    /// Calls so far.
    calls: u64,
    /// Where shares of servers are mounted, with their sources and options.
    shares: BTreeMap<PathBuf, (String, Vec<String>)>,
    /// How large the disk is said to be, in bytes; `None`: [`DISK`].
    size: Option<u64>,
    /// What is left of the disk, in bytes; `None`: as much as the files leave.
    free: Option<u64>,
    /// Which device is bound where.
    bound: BTreeMap<PathBuf, u64>,
    /// Where loop devices hold one open.
    held: BTreeSet<PathBuf>,
    /// Devices that somebody else has for himself.
    alone: BTreeSet<PathBuf>,
    /// File systems of devices.
    formats: BTreeMap<PathBuf, String>,
    /// What is mounted where, of what was mounted by its device, and of binds of that.
    sources: BTreeMap<PathBuf, String>,
    /// Which part of it, where that is not all.
    parts: BTreeMap<PathBuf, PathBuf>,
    /// What disks were mounted with last, by device.
    options: BTreeMap<String, String>,
    programs: Programs,
    /// Since when the kernel has counters of the machine as a whole.
    counted_at: Option<Timestamp>,
}

/// The file system; a clone is the same one.
#[derive(Clone, Debug, Default)]
pub struct MemFs {
    state: Arc<Mutex<State>>,
    calm: Arc<std::sync::Condvar>,
}

impl MemFs {
    /// With these directories.
    #[must_use]
    pub fn with_dirs<'a>(dirs: impl IntoIterator<Item = &'a str>) -> Self {
        let fs = Self::default();
        for dir in dirs {
            fs.create_dir(Path::new(dir), 0o755).expect("an empty file system takes a directory");
        }
        fs
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the kernel counts what the machine as a whole uses, without which nobody measures pods.
    pub fn count(&self, now: Timestamp) {
        self.state().counted_at = Some(now);
    }

    /// From now on, for all that is at this path or below it. One trouble per path.
    pub fn trouble(&self, path: &Path, trouble: FileTrouble) {
        self.state().troubles.insert(path.to_owned(), trouble);
    }

    /// Ends the trouble of one path.
    pub fn calm_at(&self, path: &Path) {
        self.state().troubles.remove(path);
        self.calm.notify_all();
    }

    /// Ends all trouble.
    pub fn calm(&self) {
        self.state().troubles.clear();
        self.calm.notify_all();
    }

    /// How much is left of the 100 GiB of the disk from now on, in bytes, whatever the files take.
    pub fn set_free(&self, bytes: u64) {
        self.state().free = Some(bytes);
    }

    /// How large the disk is said to be from now on, in bytes.
    pub fn set_size(&self, bytes: u64) {
        self.state().size = Some(bytes);
    }

    /// Calls that hang now.
    #[must_use]
    pub fn hanging(&self) -> usize {
        self.state().hanging
    }

    /// Calls so far, whatever became of them.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// How often a name or a mount went. While it is the same, whatever was there is there still.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.state().tree.losses
    }

    /// Makes a socket, pipe or device.
    ///
    /// # Panics
    /// There is something already, or no place for it.
    pub fn special(&self, path: &Path, kind: FileKind) {
        let mut state = self.state();
        let Found { parent, name, .. } = state.tree.find(path, false).expect("its directory is there");
        state.tree.add(parent, name, Kind::Special(kind), 0o644).expect("its place is free");
    }

    /// A further name of a file.
    ///
    /// # Panics
    /// There is no such file, or the new name is taken.
    pub fn hard_link(&self, file: &Path, link: &Path) {
        let mut state = self.state();
        let ino = state.tree.get(file, false).expect("the file is there");
        let Found { parent, name, .. } = state.tree.find(link, false).expect("its directory is there");
        let name = name.expect("a link has a name");
        let old = state.tree.dir_mut(parent).expect("a directory").insert(name, ino);
        assert_eq!(old, None, "the name is taken");
        state.tree.node_mut(ino).links += 1;
    }

    /// As a program does it that writes in place: makes the file or adds to it. No trouble stops it.
    ///
    /// # Errors
    /// There is no such folder, or something else than a file.
    pub fn append(&self, path: &Path, bytes: &[u8]) -> HostResult<()> {
        let mut state = self.state();
        let done = state.tree.find(path, true).and_then(|found| {
            let ino = match found.node {
                Some(ino) => ino,
                None => state.tree.add(found.parent, found.name, Kind::File(Vec::new()), 0o644)?,
            };
            let node = state.tree.node_mut(ino);
            node.written = Some(Instant::now());
            match &mut node.kind {
                Kind::File(content) => content.extend_from_slice(bytes),
                Kind::Dir(_) => return Err(Errno::IsDir),
                _ => return Err(Errno::Inval),
            }
            Ok(())
        });
        done.map_err(|e| HostError::new("write", path, e))
    }

    /// The power fails: of content written within the last half minute only a part is on the disk, by `seed`: nothing, a
    /// piece, or all. Names are as they were, for the file system keeps a journal of those.
    pub fn lose_power(&self, seed: u64) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let now = Instant::now();
        for node in self.state().tree.nodes.values_mut() {
            let young = node.written.take().is_some_and(|at| now.saturating_duration_since(at) < WRITE_BACK);
            if let (Kind::File(content), true) = (&mut node.kind, young) {
                let whole = content.len();
                content.truncate(match rng.u8(..3) {
                    0 => 0,
                    1 => rng.usize(..=whole),
                    _ => whole,
                });
            }
        }
    }

    /// One call: trouble of its path first.
    fn call<T>(
        &self,
        op: &'static str,
        path: &Path,
        writes: bool,
        f: impl FnOnce(&mut State) -> Res<T>,
    ) -> HostResult<T> {
        let mut state = self.state();
        state.calls += 1;
        loop {
            let troubled = state.troubles.iter().find(|(at, _)| path.starts_with(at)).map(|(_, t)| *t);
            match troubled {
                Some(FileTrouble::Fail(e)) => return Err(HostError::new(op, path, e)),
                Some(FileTrouble::FailCalls(only, e)) if only == op => return Err(HostError::new(op, path, e)),
                Some(FileTrouble::FailWrites(e)) if writes => return Err(HostError::new(op, path, e)),
                Some(FileTrouble::Hang) if actor::testing::is_inline() => {
                    drop(state);
                    actor::testing::hang();
                }
                Some(FileTrouble::Hang) => {
                    state.hanging += 1;
                    state = self.calm.wait(state).unwrap_or_else(PoisonError::into_inner);
                    state.hanging -= 1;
                }
                _ => break,
            }
        }
        f(&mut state).map_err(|e| HostError::new(op, path, e))
    }

    fn content<T>(&self, path: &Path, links: Links, read: impl FnOnce(&[u8]) -> Result<T, io::Error>) -> HostResult<T> {
        let found = self.call("open", path, false, |s| {
            let ino = s.tree.get(path, links == Links::Follow)?;
            Ok(match &s.tree.node(ino).kind {
                Kind::File(content) => Ok(read(content)),
                Kind::Special(FileKind::Socket) => Err(io::Error::from_raw_os_error(ENXIO)),
                _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
            })
        });
        found?.map_err(|e| HostError::new("open", path, e))?.map_err(|e| HostError::new("read", path, e))
    }
}

fn make_dirs(tree: &mut Tree, path: &Path, mode: u32) -> Res<u64> {
    match tree.find(path, true) {
        Ok(Found { node: Some(ino), .. }) => return tree.dir(ino).map(|_| ino).map_err(|_| Errno::Exist),
        Ok(_) | Err(Errno::NoEnt) => {}
        Err(e) => return Err(e),
    }
    let parent = make_dirs(tree, path.parent().ok_or(Errno::NoEnt)?, mode)?;
    let name = path.file_name().and_then(|n| n.to_str()).ok_or(Errno::Inval)?;
    tree.add(parent, Some(name.to_owned()), Kind::Dir(BTreeMap::new()), mode)
}

fn absent_is_fine(done: Res<()>) -> Res<()> {
    match done {
        Err(Errno::NoEnt) => Ok(()),
        other => other,
    }
}

fn stat_of(tree: &Tree, ino: u64) -> FileStat {
    let n = tree.node(ino);
    FileStat {
        kind: n.file_kind(),
        mode: n.mode,
        uid: n.uid,
        gid: n.gid,
        size: n.size(),
        dev: n.dev,
        ino,
        links: n.links,
        // No clock: what is made later has a later time.
        modified: Timestamp(i64::try_from(ino).unwrap_or(i64::MAX)),
    }
}

fn stat(tree: &Tree, path: &Path, follow: bool) -> Res<Option<FileStat>> {
    match tree.find(path, follow) {
        Ok(found) => Ok(found.node.map(|ino| stat_of(tree, ino))),
        Err(Errno::NoEnt | Errno::NotDir) => Ok(None),
        Err(e) => Err(e),
    }
}

impl HostFs for MemFs {
    fn create_dir(&self, path: &Path, mode: u32) -> HostResult<()> {
        self.call("mkdir", path, true, |s| make_dirs(&mut s.tree, path, mode).map(drop))
    }

    fn create_dir_within(&self, base: &Path, relative: &Path, mode: u32) -> HostResult<()> {
        self.call("mkdir", &base.join(relative), true, |s| {
            let root = s.tree.get(base, true)?;
            s.tree.dir(root)?;
            let mut done = PathBuf::new();
            for part in relative.components() {
                match part {
                    Component::Normal(name) => done.push(name),
                    Component::CurDir => continue,
                    _ => return Err(Errno::Inval),
                }
                let found = s.tree.walk(vec![root], &done, true, true)?;
                match found.node {
                    Some(ino) => s.tree.dir(ino).map(drop)?,
                    None => drop(s.tree.add(found.parent, found.name, Kind::Dir(BTreeMap::new()), mode)?),
                }
            }
            Ok(())
        })
    }

    fn write_file(&self, path: &Path, content: &[u8], mode: u32) -> HostResult<()> {
        self.call("write", path, true, |s| {
            let found = s.tree.find(path, false)?;
            if let (Some(ino), Some(name)) = (found.node, &found.name) {
                if s.tree.dir(ino).is_ok() {
                    return Err(Errno::IsDir);
                }
                s.tree.unlink(found.parent, name)?;
            }
            let ino = s.tree.add(found.parent, found.name, Kind::File(content.to_vec()), mode)?;
            s.tree.node_mut(ino).written = Some(Instant::now());
            Ok(())
        })
    }

    fn write_file_synced(&self, path: &Path, content: &[u8], mode: u32) -> HostResult<()> {
        self.write_file(path, content, mode)?;
        self.sync_file(path)
    }

    fn sync_file(&self, path: &Path) -> HostResult<()> {
        self.call("fsync", path, true, |s| {
            let ino = s.tree.get(path, false)?;
            s.tree.node_mut(ino).written = None;
            Ok(())
        })
    }

    fn sync_dir(&self, path: &Path) -> HostResult<()> {
        // Names are never lost here.
        self.call("fsync", path, true, |s| s.tree.dir(s.tree.get(path, true)?).map(drop))
    }

    fn create_file(&self, path: &Path, mode: u32) -> HostResult<()> {
        self.call("create", path, true, |s| {
            let found = s.tree.find(path, false)?;
            s.tree.add(found.parent, found.name, Kind::File(Vec::new()), mode).map(drop)
        })
    }

    fn read_file(&self, path: &Path, max_bytes: u64) -> HostResult<Vec<u8>> {
        self.content(path, Links::Follow, |content| {
            if content.len() as u64 > max_bytes {
                return Err(io::Error::new(io::ErrorKind::InvalidData, format!("longer than {max_bytes} bytes")));
            }
            Ok(content.to_vec())
        })
    }

    fn read_within(&self, base: &Path, relative: &Path, max_bytes: u64) -> HostResult<Vec<u8>> {
        let whole = base.join(relative);
        let found = self.call("open", &whole, false, |s| {
            let root = s.tree.get(base, true)?;
            let ino = s.tree.walk(vec![root], relative, true, true)?.node.ok_or(Errno::NoEnt)?;
            Ok(match &s.tree.node(ino).kind {
                Kind::File(content) if content.len() as u64 <= max_bytes => Ok(content.to_vec()),
                Kind::File(_) => Err(io::ErrorKind::InvalidData),
                _ => Err(io::ErrorKind::InvalidInput),
            })
        });
        found?.map_err(|kind| HostError::new("read", whole, kind))
    }

    fn read_end(&self, path: &Path, max_bytes: u64, links: Links) -> HostResult<FileEnd> {
        self.content(path, links, |content| {
            let from = content.len().saturating_sub(usize::try_from(max_bytes).unwrap_or(usize::MAX));
            Ok(FileEnd { bytes: content[from..].to_vec(), cut: from > 0 })
        })
    }

    fn list_dir(&self, path: &Path) -> HostResult<Vec<DirEntry>> {
        self.call("readdir", path, false, |s| {
            let entries = s.tree.dir(s.tree.get(path, true)?)?;
            let entry = |(name, ino): (&String, &u64)| DirEntry {
                name: name.clone(),
                is_dir: s.tree.node(*ino).file_kind() == FileKind::Dir,
            };
            Ok(entries.iter().map(entry).collect())
        })
    }

    fn remove_file(&self, path: &Path) -> HostResult<()> {
        self.call("unlink", path, true, |s| {
            absent_is_fine(s.tree.find(path, false).and_then(|found| {
                let ino = found.node.ok_or(Errno::NoEnt)?;
                if s.tree.dir(ino).is_ok() {
                    return Err(Errno::IsDir);
                }
                s.tree.unlink(found.parent, &found.name.ok_or(Errno::IsDir)?)
            }))
        })
    }

    fn remove_empty_dir(&self, path: &Path) -> HostResult<()> {
        self.call("rmdir", path, true, |s| {
            absent_is_fine(s.tree.find(path, false).and_then(|found| {
                let ino = found.node.ok_or(Errno::NoEnt)?;
                if !s.tree.dir(ino)?.is_empty() {
                    return Err(Errno::NotEmpty);
                }
                s.tree.unlink(found.parent, &found.name.ok_or(Errno::Busy)?)
            }))
        })
    }

    fn remove_tree(&self, path: &Path) -> HostResult<()> {
        self.call("remove", path, true, |s| {
            absent_is_fine(s.tree.find(path, false).and_then(|found| {
                let (ino, name) = (found.node.ok_or(Errno::NoEnt)?, found.name.ok_or(Errno::Busy)?);
                if s.tree.dir(ino).is_ok() {
                    if s.tree.node(ino).dev != s.tree.node(found.parent).dev {
                        return Err(Errno::Busy);
                    }
                    s.tree.clear(ino)?;
                }
                s.tree.unlink(found.parent, &name)
            }))
        })
    }

    fn symlink(&self, target: &Path, link: &Path) -> HostResult<()> {
        self.call("symlink", link, true, |s| {
            if target.as_os_str().is_empty() {
                return Err(Errno::NoEnt);
            }
            let found = s.tree.find(link, false)?;
            s.tree.add(found.parent, found.name, Kind::Link(target.to_owned()), 0o777).map(drop)
        })
    }

    fn read_link(&self, path: &Path) -> HostResult<PathBuf> {
        self.call("readlink", path, false, |s| match &s.tree.node(s.tree.get(path, false)?).kind {
            Kind::Link(target) => Ok(target.clone()),
            _ => Err(Errno::Inval),
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> HostResult<()> {
        self.call("rename", from, true, |s| {
            let (old, new) = (s.tree.find(from, false)?, s.tree.find(to, false)?);
            let ino = old.node.ok_or(Errno::NoEnt)?;
            let (old_name, new_name) = (old.name.ok_or(Errno::Busy)?, new.name.ok_or(Errno::Busy)?);
            if s.tree.node(old.parent).dev != s.tree.node(new.parent).dev {
                return Err(Errno::XDev);
            }
            if new.node == Some(ino) {
                return Ok(());
            }
            if let Some(there) = new.node {
                match (s.tree.dir(ino).is_ok(), s.tree.dir(there)) {
                    (true, Err(_)) => return Err(Errno::NotDir),
                    (false, Ok(_)) => return Err(Errno::IsDir),
                    (true, Ok(entries)) if !entries.is_empty() => return Err(Errno::NotEmpty),
                    _ => s.tree.unlink(new.parent, &new_name)?,
                }
            }
            s.tree.losses += 1;
            s.tree.dir_mut(old.parent)?.remove(&old_name);
            s.tree.dir_mut(new.parent)?.insert(new_name, ino);
            Ok(())
        })
    }

    fn set_owner(&self, path: &Path, uid: Option<u32>, gid: Option<u32>) -> HostResult<()> {
        self.call("chown", path, true, |s| {
            let ino = s.tree.get(path, false)?;
            let node = s.tree.node_mut(ino);
            node.uid = uid.unwrap_or(node.uid);
            node.gid = gid.unwrap_or(node.gid);
            Ok(())
        })
    }

    fn set_mode(&self, path: &Path, mode: u32) -> HostResult<()> {
        self.call("chmod", path, true, |s| {
            let ino = s.tree.get(path, false)?;
            let node = s.tree.node_mut(ino);
            let has_mode = !matches!(node.kind, Kind::Link(_));
            if has_mode {
                node.mode = mode & 0o7777;
            }
            Ok(has_mode)
        })
        .and_then(|set| set.then_some(()).ok_or_else(|| HostError::new("chmod", path, io::ErrorKind::Unsupported)))
    }

    fn give_group(&self, path: &Path, _: Links, grant: GroupGrant, met: &Met<'_>) -> HostResult<bool> {
        give_group_by_path(self, path, grant, met)
    }

    fn stat(&self, path: &Path) -> HostResult<Option<FileStat>> {
        self.call("stat", path, false, |s| stat(&s.tree, path, true))
    }

    fn stat_link(&self, path: &Path) -> HostResult<Option<FileStat>> {
        self.call("stat", path, false, |s| stat(&s.tree, path, false))
    }

    fn stat_fs(&self, path: &Path) -> HostResult<FsStat> {
        self.call("statfs", path, false, |s| {
            let dev = s.tree.node(s.tree.get(path, true)?).dev;
            let (used, files) = (s.tree.nodes.values().map(tree::Node::size).sum::<u64>(), s.tree.nodes.len() as u64);
            Ok(FsStat {
                magic: s.tree.mounted.get(&dev).map_or(EXT4_MAGIC, |m| m.magic),
                total_bytes: s.size.unwrap_or(DISK),
                available_bytes: s.free.unwrap_or(DISK.saturating_sub(used)),
                total_inodes: 1 << 20,
                free_inodes: (1_u64 << 20).saturating_sub(files),
            })
        })
    }
}

/// What is "compressed" keeps its content: nobody here reads it as gzip.
impl Compress for MemFs {
    fn compress(&self, from: &Path, to: &Path) -> HostResult<()> {
        let content = self.content(from, Links::Refuse, |content| Ok(content.to_vec()))?;
        let mode = self.call("stat", from, false, |s| Ok(s.tree.node(s.tree.get(from, false)?).mode))?;
        self.write_file(to, &content, mode)
    }
}
