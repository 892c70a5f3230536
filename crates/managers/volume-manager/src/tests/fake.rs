//! A host in a temporary folder: real files, pretended mounts and owners; and the manager on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use actor::{Actor, ActorRef, Ctx, Handler, Kernel, Spec, supervised};
use contract::Wiring;
use contract::event::RecordEvent;
use contract::objects::{FetchConfigMap, FetchSecret, FetchToken, ObjectError, ObjectVersion, Token};
use contract::volume::{MountedVolumes, PodVolumes, VolumeError};
use model::core::{ConfigMap, Pod, Secret};
use model::object::{ObjectKind, ObjectRef};
use model::{PodUid, Timestamp};
use ports::host::{
    DirEntry, FileEnd, FileKind, FileStat, FsStat, HUGETLBFS_MAGIC, HostError, HostFs, HostResult, Links, MemoryMount,
    MountEntry, Mounter, TMPFS_MAGIC,
};
use serde_json::{Value, json};

use crate::projected::Content;
use crate::set_up::{self, Failed};
use crate::{Config, Deps, DesiredVolumes, Serial, VolumeManager};

pub(super) struct FakeHost {
    dir: tempfile::TempDir,
    world: Mutex<World>,
    released: Condvar,
}

#[derive(Default)]
struct World {
    mounts: BTreeMap<PathBuf, i64>,
    tmpfs_sizes: BTreeMap<PathBuf, Option<u64>>,
    groups: BTreeMap<PathBuf, u32>,
    owners: BTreeMap<PathBuf, u32>,
    failing: BTreeSet<(&'static str, String)>,
    /// Making directories with this in their path waits.
    hanging: Option<String>,
    makes: Vec<PathBuf>,
}

fn at<T>(op: &'static str, path: &Path, r: io::Result<T>) -> HostResult<T> {
    r.map_err(|e| HostError::new(op, path, e))
}

fn absent_is_fine(r: io::Result<()>) -> io::Result<()> {
    match r {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

impl FakeHost {
    pub(super) fn new() -> Arc<Self> {
        let dir = tempfile::tempdir().unwrap();
        Arc::new(Self { dir, world: Mutex::default(), released: Condvar::new() })
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    /// Path below the root directory of the node.
    pub(super) fn root(&self, below: &str) -> PathBuf {
        self.path("kubelet").join(below)
    }

    pub(super) fn file(&self, below_root: &str) {
        let file = self.root(below_root);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "content").unwrap();
    }

    pub(super) fn dir(&self, below_root: &str) {
        fs::create_dir_all(self.root(below_root)).unwrap();
    }

    pub(super) fn mount(&self, below_root: &str, magic: i64) {
        self.dir(below_root);
        self.world.lock().unwrap().mounts.insert(self.root(below_root), magic);
    }

    pub(super) fn is_mounted(&self, below_root: &str) -> bool {
        self.world.lock().unwrap().mounts.contains_key(&self.root(below_root))
    }

    pub(super) fn tmpfs_size(&self, below_root: &str) -> Option<Option<u64>> {
        self.world.lock().unwrap().tmpfs_sizes.get(&self.root(below_root)).copied()
    }

    pub(super) fn group(&self, path: &Path) -> Option<u32> {
        self.world.lock().unwrap().groups.get(path).copied()
    }

    pub(super) fn owner(&self, path: &Path) -> Option<u32> {
        self.world.lock().unwrap().owners.get(path).copied()
    }

    pub(super) fn mode(&self, path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    pub(super) fn fail(&self, op: &'static str, part: &str, on: bool) {
        let mut world = self.world.lock().unwrap();
        if on {
            world.failing.insert((op, part.into()))
        } else {
            world.failing.remove(&(op, part.into()))
        };
    }

    pub(super) fn hang(&self, part: Option<&str>) {
        self.world.lock().unwrap().hanging = part.map(str::to_owned);
        self.released.notify_all();
    }

    pub(super) fn made(&self, below_root: &str) -> bool {
        let path = self.root(below_root);
        self.world.lock().unwrap().makes.contains(&path)
    }

    fn enter(&self, op: &'static str, path: &Path) -> HostResult<std::sync::MutexGuard<'_, World>> {
        let mut world = self.world.lock().unwrap();
        if op == "mkdir" {
            world.makes.push(path.to_owned());
        }
        let text = path.to_string_lossy().into_owned();
        while op == "mkdir" && world.hanging.as_ref().is_some_and(|h| text.contains(h.as_str())) {
            world = self.released.wait(world).unwrap();
        }
        if world.failing.iter().any(|(o, part)| *o == op && text.contains(part.as_str())) {
            return Err(HostError::new(op, path, io::ErrorKind::PermissionDenied));
        }
        Ok(world)
    }
}

fn stat_of(r: io::Result<fs::Metadata>, path: &Path) -> HostResult<Option<FileStat>> {
    let m = match r {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(None),
        other => at("stat", path, other)?,
    };
    let t = m.file_type();
    let kind = match () {
        () if t.is_dir() => FileKind::Dir,
        () if t.is_symlink() => FileKind::Symlink,
        () if t.is_socket() => FileKind::Socket,
        () if t.is_char_device() => FileKind::CharDevice,
        () => FileKind::File,
    };
    let (mode, uid, gid) = (m.mode() & 0o7777, m.uid(), m.gid());
    Ok(Some(FileStat { kind, mode, uid, gid, size: m.size(), dev: m.dev(), ino: m.ino(), links: m.nlink() }))
}

impl HostFs for FakeHost {
    fn create_dir(&self, path: &Path, mode: u32) -> HostResult<()> {
        drop(self.enter("mkdir", path)?);
        if path.is_dir() {
            return Ok(());
        }
        if let Some(parent) = path.parent().filter(|p| !p.exists()) {
            self.create_dir(parent, mode)?;
        }
        at("mkdir", path, fs::create_dir(path))?;
        self.set_mode(path, mode)
    }
    fn create_dir_within(&self, base: &Path, relative: &Path, mode: u32) -> HostResult<()> {
        self.create_dir(&base.join(relative), mode)
    }
    fn write_file(&self, path: &Path, content: &[u8], mode: u32) -> HostResult<()> {
        drop(self.enter("write", path)?);
        at("write", path, fs::write(path, content))?;
        self.set_mode(path, mode)
    }
    fn create_file(&self, path: &Path, mode: u32) -> HostResult<()> {
        at("create", path, fs::File::create_new(path).map(drop))?;
        self.set_mode(path, mode)
    }
    fn write_file_synced(&self, path: &Path, _: &[u8], _: u32) -> HostResult<()> {
        Err(HostError::new("write", path, io::ErrorKind::Unsupported))
    }
    fn sync_dir(&self, path: &Path) -> HostResult<()> {
        Err(HostError::new("fsync", path, io::ErrorKind::Unsupported))
    }
    fn read_file(&self, path: &Path, _: u64) -> HostResult<Vec<u8>> {
        at("read", path, fs::read(path))
    }
    fn read_within(&self, base: &Path, _: &Path, _: u64) -> HostResult<Vec<u8>> {
        Err(HostError::new("read", base, io::ErrorKind::Unsupported))
    }
    fn read_end(&self, path: &Path, _: u64, _: Links) -> HostResult<FileEnd> {
        Err(HostError::new("read", path, io::ErrorKind::Unsupported))
    }
    fn list_dir(&self, path: &Path) -> HostResult<Vec<DirEntry>> {
        let mut out = Vec::new();
        for e in at("readdir", path, fs::read_dir(path))? {
            let e = at("readdir", path, e)?;
            let is_dir = e.file_type().unwrap().is_dir();
            out.push(DirEntry { name: e.file_name().into_string().unwrap(), is_dir });
        }
        out.sort();
        Ok(out)
    }
    fn remove_file(&self, path: &Path) -> HostResult<()> {
        at("unlink", path, absent_is_fine(fs::remove_file(path)))
    }
    fn remove_empty_dir(&self, path: &Path) -> HostResult<()> {
        drop(self.enter("rmdir", path)?);
        at("rmdir", path, absent_is_fine(fs::remove_dir(path)))
    }
    fn remove_tree(&self, path: &Path) -> HostResult<()> {
        let world = self.enter("remove", path)?;
        if world.mounts.keys().any(|m| m.starts_with(path)) {
            return Err(HostError::new("remove", path, io::ErrorKind::ResourceBusy));
        }
        let gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        at("remove", path, absent_is_fine(gone))
    }
    fn symlink(&self, target: &Path, link: &Path) -> HostResult<()> {
        drop(self.enter("symlink", link)?);
        at("symlink", link, std::os::unix::fs::symlink(target, link))
    }
    fn read_link(&self, path: &Path) -> HostResult<PathBuf> {
        at("readlink", path, fs::read_link(path))
    }
    fn rename(&self, from: &Path, to: &Path) -> HostResult<()> {
        at("rename", from, fs::rename(from, to))
    }
    fn set_owner(&self, path: &Path, uid: Option<u32>, gid: Option<u32>) -> HostResult<()> {
        let mut world = self.enter("chown", path)?;
        world.owners.extend(uid.map(|u| (path.to_owned(), u)));
        world.groups.extend(gid.map(|g| (path.to_owned(), g)));
        Ok(())
    }
    fn set_mode(&self, path: &Path, mode: u32) -> HostResult<()> {
        at("chmod", path, fs::set_permissions(path, fs::Permissions::from_mode(mode)))
    }
    fn stat(&self, path: &Path) -> HostResult<Option<FileStat>> {
        stat_of(fs::metadata(path), path)
    }
    fn stat_link(&self, path: &Path) -> HostResult<Option<FileStat>> {
        stat_of(fs::symlink_metadata(path), path)
    }
    fn stat_fs(&self, path: &Path) -> HostResult<FsStat> {
        let magic = self.world.lock().unwrap().mounts.get(path).copied().unwrap_or(0xef53);
        Ok(FsStat { magic, total_bytes: 0, available_bytes: 0, total_inodes: 0, free_inodes: 0 })
    }
}

impl Mounter for FakeHost {
    fn mount_memory(&self, target: &Path, what: &MemoryMount) -> HostResult<()> {
        let mut world = self.enter("mount", target)?;
        let magic = match what {
            MemoryMount::Tmpfs { size_bytes } => {
                world.tmpfs_sizes.insert(target.to_owned(), *size_bytes);
                TMPFS_MAGIC
            }
            MemoryMount::Hugetlbfs { .. } => HUGETLBFS_MAGIC,
        };
        world.mounts.insert(target.to_owned(), magic);
        Ok(())
    }
    fn bind_within(&self, base: &Path, relative: &Path, target: &Path) -> HostResult<()> {
        let mut world = self.enter("bind mount", target)?;
        let source = base.join(relative);
        let made = if source.is_dir() { fs::create_dir_all(target) } else { fs::write(target, "") };
        at("create", target, made)?;
        world.mounts.insert(target.to_owned(), 0xef53);
        Ok(())
    }
    fn unmount(&self, target: &Path) -> HostResult<()> {
        let mut world = self.enter("unmount", target)?;
        // What was in memory is gone with its mount.
        if matches!(world.mounts.remove(target), Some(TMPFS_MAGIC | HUGETLBFS_MAGIC)) {
            fs::remove_dir_all(target).unwrap();
            fs::create_dir(target).unwrap();
        }
        Ok(())
    }
    fn is_mount_point(&self, path: &Path) -> HostResult<bool> {
        Ok(self.enter("is mounted", path)?.mounts.contains_key(path))
    }
    fn mounts(&self) -> HostResult<Vec<MountEntry>> {
        Ok(Vec::new())
    }
}

struct Recorder(Arc<Mutex<Vec<String>>>);
impl Actor for Recorder {
    type Context = Ctx<Self>;
}
supervised!(Recorder);
impl Handler<RecordEvent> for Recorder {
    type Result = ();
    fn handle(&mut self, m: RecordEvent, _: &mut Ctx<Self>) {
        let e = m.event;
        self.0.lock().unwrap().push(format!("{} {}: {}", e.kind.as_str(), e.reason, e.message));
    }
}

pub(super) fn config(host: &FakeHost) -> Config {
    Config { root_dir: host.path("kubelet"), memory_allocatable_bytes: 8 << 30, ..Config::default() }
}

pub(super) fn deps(host: &Arc<FakeHost>) -> Deps {
    Deps { fs: host.clone(), mounts: host.clone(), serial: Serial::default(), desired: DesiredVolumes::default() }
}

pub(super) fn content() -> Content {
    Content { fetched: projection::Fetched::default(), now: model::Timestamp::from_secs(1_795_165_717), random: 1 }
}

/// Sets up volumes that hold no objects.
pub(super) fn all(deps: &Deps, config: &Config, pod: &Pod) -> Result<MountedVolumes, Vec<Failed>> {
    let out = set_up::all(deps, config, pod, &content());
    if out.failed.is_empty() { Ok(out.done) } else { Err(out.failed) }
}

/// A pod whose one container mounts every volume of the list.
pub(super) fn pod(uid: &str, volumes: Value) -> Arc<Pod> {
    let mounts: Vec<Value> =
        volumes.as_array().unwrap().iter().map(|v| json!({"name": v["name"], "mountPath": "/m"})).collect();
    let spec = json!({"volumes": volumes, "containers": [{"name": "app", "volumeMounts": mounts}]});
    with_spec(uid, spec)
}

pub(super) fn with_spec(uid: &str, spec: Value) -> Arc<Pod> {
    let metadata = json!({"name": uid, "namespace": "default", "uid": uid});
    Arc::new(serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap())
}

/// Objects of namespace `default`, and the board that tells of them.
#[derive(Default)]
pub(super) struct Objects {
    maps: Mutex<BTreeMap<String, Arc<ConfigMap>>>,
    secrets: Mutex<BTreeMap<String, Arc<Secret>>>,
    token: Mutex<Option<Token>>,
    /// Set: nothing is answered but this.
    away: Mutex<Option<String>>,
    version: Mutex<u64>,
    asked: Mutex<Vec<String>>,
    /// Where changes are shown.
    wiring: Wiring,
}

impl Objects {
    fn show(&self, kind: ObjectKind, name: &str, there: bool) {
        let mut version = self.version.lock().unwrap();
        *version += 1;
        let resource_version = if there { version.to_string() } else { String::new() };
        let key = ObjectRef { kind, namespace: "default".into(), name: name.into() };
        self.wiring.put(key, ObjectVersion { resource_version });
    }
    pub(super) fn put_map(&self, name: &str, data: Value) {
        let map = serde_json::from_value(json!({"data": data})).unwrap();
        self.maps.lock().unwrap().insert(name.into(), Arc::new(map));
        self.show(ObjectKind::ConfigMap, name, true);
    }
    pub(super) fn remove_map(&self, name: &str) {
        self.maps.lock().unwrap().remove(name);
        self.show(ObjectKind::ConfigMap, name, false);
    }
    pub(super) fn put_secret(&self, name: &str, data: Value) {
        let secret = serde_json::from_value(json!({"data": data})).unwrap();
        self.secrets.lock().unwrap().insert(name.into(), Arc::new(secret));
        self.show(ObjectKind::Secret, name, true);
    }
    pub(super) fn put_token(&self, text: &str, refresh_at: Timestamp) {
        let token = Token { text: text.into(), expires_at: refresh_at, refresh_at };
        *self.token.lock().unwrap() = Some(token);
    }
    pub(super) fn go_away(&self, why: Option<&str>) {
        *self.away.lock().unwrap() = why.map(str::to_owned);
    }
    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
    fn find<T: Clone>(&self, kind: &str, name: &str, found: Option<T>) -> Result<T, ObjectError> {
        self.asked.lock().unwrap().push(format!("{kind} {name}"));
        match &*self.away.lock().unwrap() {
            Some(why) => Err(ObjectError::Failed(why.clone())),
            None => found.ok_or_else(|| ObjectError::NotFound(format!("{kind} {name:?} not found"))),
        }
    }
}

struct Store(Arc<Objects>);
impl Actor for Store {
    type Context = Ctx<Self>;
}
supervised!(Store);
impl Handler<FetchConfigMap> for Store {
    type Result = Result<Arc<ConfigMap>, ObjectError>;
    fn handle(&mut self, m: FetchConfigMap, _: &mut Ctx<Self>) -> Self::Result {
        let found = self.0.maps.lock().unwrap().get(&m.name).cloned();
        self.0.find("configmap", &m.name, found)
    }
}
impl Handler<FetchSecret> for Store {
    type Result = Result<Arc<Secret>, ObjectError>;
    fn handle(&mut self, m: FetchSecret, _: &mut Ctx<Self>) -> Self::Result {
        let found = self.0.secrets.lock().unwrap().get(&m.name).cloned();
        self.0.find("secret", &m.name, found)
    }
}
impl Handler<FetchToken> for Store {
    type Result = Result<Token, ObjectError>;
    fn handle(&mut self, m: FetchToken, _: &mut Ctx<Self>) -> Self::Result {
        let found = self.0.token.lock().unwrap().clone();
        self.0.find("token", &format!("{}/{}", m.audience, m.expiration_s), found)
    }
}

#[derive(Clone)]
pub(super) struct Bench {
    pub(super) wiring: Wiring,
    pub(super) manager: ActorRef<VolumeManager>,
    pub(super) events: Arc<Mutex<Vec<String>>>,
    pub(super) objects: Arc<Objects>,
}

impl Bench {
    pub(super) fn start(kernel: &Kernel, host: &Arc<FakeHost>) -> Self {
        let wiring = Wiring::default();
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = log.clone();
        wiring
            .inlet::<RecordEvent>()
            .connect(&kernel.spawn(Spec::new("event-recorder"), move |_| Recorder(lines.clone())));
        let objects = Arc::new(Objects { wiring: wiring.clone(), ..Objects::default() });
        let store = objects.clone();
        let store = kernel.spawn(Spec::new("object-store"), move |_| Store(store.clone()));
        wiring.inlet::<FetchConfigMap>().connect(&store);
        wiring.inlet::<FetchSecret>().connect(&store);
        wiring.inlet::<FetchToken>().connect(&store);
        let (crew, config, deps) = (wiring.crew(), Arc::new(config(host)), Arc::new(deps(host)));
        let new = move |_: u64| VolumeManager::new(crew.succeed(), config.clone(), deps.clone());
        let manager = kernel.spawn(Spec::new("volume-manager"), new);
        wiring.connect::<contract::VolumeManager, _>(&manager);
        Self { wiring, manager, events: log, objects }
    }

    pub(super) fn row(&self, uid: &str) -> Option<Arc<PodVolumes>> {
        self.wiring.board::<PodVolumes>().get(&PodUid::from(uid))
    }

    pub(super) fn present(&self, uid: &str) -> Option<Vec<String>> {
        self.row(uid).map(|r| r.present.clone())
    }
}

pub(super) fn paths(m: &Result<Arc<MountedVolumes>, VolumeError>) -> Vec<String> {
    let volumes = &m.as_ref().unwrap().volumes;
    volumes.values().map(|v| v.host_path.to_string_lossy().into_owned()).collect()
}
