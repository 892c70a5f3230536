//! The manager on a disk in memory, with objects that an object store would have.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use actor::{ActorRef, Kernel};
use contract::objects::{FetchConfigMap, FetchSecret, FetchToken, ObjectError, ObjectVersion, Token};
use contract::volume::{MountedVolumes, PodVolumes, VolumeError};
use contract::{ObjectStore, Wiring};
use fakes::files::{Errno, FileTrouble};
use fakes::{Events, MemFs, StandIn};
use model::core::{ConfigMap, Pod, Secret};
use model::object::{ObjectKind, ObjectRef};
use model::{PodUid, Timestamp};
use ports::host::{FileStat, HostFs, Mounter};
use serde_json::{Value, json};

use crate::projected::Content;
use crate::set_up::{self, Failed};
use crate::{Config, Deps, DesiredVolumes, Serial, VolumeManager};

/// The disk. Paths are those below the root directory of the node, which is not there at first.
#[derive(Clone, Default)]
pub(super) struct Host(pub(super) MemFs);

impl Host {
    pub(super) fn root(&self, below: &str) -> PathBuf {
        Path::new("/kubelet").join(below)
    }

    fn files(&self) -> Arc<MemFs> {
        Arc::new(self.0.clone())
    }

    pub(super) fn file(&self, below: &str) {
        self.write(below, "content");
    }

    pub(super) fn write(&self, below: &str, text: &str) {
        let file = self.root(below);
        self.0.create_dir(file.parent().unwrap(), 0o755).unwrap();
        self.0.write_file(&file, text.as_bytes(), 0o644).unwrap();
    }

    /// Content of a file, links followed; empty: there is none.
    pub(super) fn read(&self, below: &str) -> String {
        String::from_utf8(self.0.read_file(&self.root(below), 1 << 20).unwrap_or_default()).unwrap()
    }

    pub(super) fn dir(&self, below: &str) {
        self.0.create_dir(&self.root(below), 0o755).unwrap();
    }

    pub(super) fn link(&self, target: &str, below: &str) {
        self.0.symlink(target.as_ref(), &self.root(below)).unwrap();
    }

    pub(super) fn link_of(&self, below: &str) -> String {
        self.0.read_link(&self.root(below)).unwrap().to_str().unwrap().to_owned()
    }

    pub(super) fn remove(&self, below: &str) {
        self.0.remove_tree(&self.root(below)).unwrap();
    }

    pub(super) fn exists(&self, below: &str) -> bool {
        self.0.stat(&self.root(below)).unwrap().is_some()
    }

    pub(super) fn stat(&self, below: &str) -> FileStat {
        self.0.stat_link(&self.root(below)).unwrap().unwrap()
    }

    pub(super) fn mode(&self, below: &str) -> u32 {
        self.stat(below).mode
    }

    pub(super) fn mount(&self, below: &str, magic: i64) {
        self.dir(below);
        self.0.mount_as(&self.root(below), magic);
    }

    pub(super) fn is_mounted(&self, below: &str) -> bool {
        self.0.is_mount_point(&self.root(below)).unwrap()
    }

    pub(super) fn tmpfs_size(&self, below: &str) -> Option<Option<u64>> {
        self.0.tmpfs_size(&self.root(below))
    }

    /// From now on calls of an operation fail at this path and below it.
    pub(super) fn fail(&self, operation: &'static str, below: &str) {
        self.0.trouble(&self.root(below), FileTrouble::FailCalls(operation, Errno::Access));
    }
}

pub(super) fn config(host: &Host) -> Config {
    Config { root_dir: host.root(""), memory_allocatable_bytes: 8 << 30, ..Config::default() }
}

pub(super) fn deps(host: &Host) -> Deps {
    Deps { fs: host.files(), mounts: host.files(), serial: Serial::default(), desired: DesiredVolumes::default() }
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
struct Store {
    maps: BTreeMap<String, Arc<ConfigMap>>,
    secrets: BTreeMap<String, Arc<Secret>>,
    token: Option<Token>,
    /// Set: nothing is answered but this.
    away: Option<String>,
    version: u64,
    asked: Vec<String>,
}

impl Store {
    fn find<T>(&mut self, kind: &str, name: &str, found: Option<T>) -> Result<T, ObjectError> {
        self.asked.push(format!("{kind} {name}"));
        match &self.away {
            Some(why) => Err(ObjectError::Failed(why.clone())),
            None => found.ok_or_else(|| ObjectError::NotFound(format!("{kind} {name:?} not found"))),
        }
    }
}

#[derive(Clone)]
pub(super) struct Objects {
    store: Arc<Mutex<Store>>,
    wiring: Wiring,
}

impl Objects {
    fn on(wiring: &Wiring) -> Self {
        let (objects, played) =
            (Self { store: Arc::default(), wiring: wiring.clone() }, StandIn::<ObjectStore>::on(wiring));
        let store = objects.store.clone();
        played.answer(move |m: &FetchConfigMap| {
            let mut store = store.lock().unwrap();
            let found = store.maps.get(&m.name).cloned();
            store.find("configmap", &m.name, found)
        });
        let store = objects.store.clone();
        played.answer(move |m: &FetchSecret| {
            let mut store = store.lock().unwrap();
            let found = store.secrets.get(&m.name).cloned();
            store.find("secret", &m.name, found)
        });
        let store = objects.store.clone();
        played.answer(move |m: &FetchToken| {
            let mut store = store.lock().unwrap();
            let found = store.token.clone();
            store.find("token", &format!("{}/{}", m.audience, m.expiration_s), found)
        });
        objects
    }

    fn show(&self, kind: ObjectKind, name: &str, change: impl FnOnce(&mut Store) -> bool) {
        let resource_version = {
            let mut store = self.store.lock().unwrap();
            store.version += 1;
            if change(&mut store) { store.version.to_string() } else { String::new() }
        };
        let key = ObjectRef { kind, namespace: "default".into(), name: name.into() };
        self.wiring.put(key, ObjectVersion { resource_version });
    }

    pub(super) fn put_map(&self, name: &str, data: Value) {
        let map = serde_json::from_value(json!({"data": data})).unwrap();
        self.show(ObjectKind::ConfigMap, name, |s| {
            s.maps.insert(name.into(), Arc::new(map));
            true
        });
    }

    pub(super) fn remove_map(&self, name: &str) {
        self.show(ObjectKind::ConfigMap, name, |s| {
            s.maps.remove(name);
            false
        });
    }

    pub(super) fn put_secret(&self, name: &str, data: Value) {
        let secret = serde_json::from_value(json!({"data": data})).unwrap();
        self.show(ObjectKind::Secret, name, |s| {
            s.secrets.insert(name.into(), Arc::new(secret));
            true
        });
    }

    pub(super) fn put_token(&self, text: &str, refresh_at: Timestamp) {
        self.store.lock().unwrap().token = Some(Token { text: text.into(), expires_at: refresh_at, refresh_at });
    }

    pub(super) fn go_away(&self, why: Option<&str>) {
        self.store.lock().unwrap().away = why.map(str::to_owned);
    }

    /// What was asked for since the last look.
    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.store.lock().unwrap().asked)
    }
}

#[derive(Clone)]
pub(super) struct Bench {
    pub(super) wiring: Wiring,
    pub(super) manager: ActorRef<VolumeManager>,
    pub(super) events: Events,
    pub(super) objects: Objects,
}

impl Bench {
    pub(super) fn start(kernel: &Kernel, host: &Host) -> Self {
        let wiring = Wiring::default();
        let (events, objects) = (Events::on(&wiring), Objects::on(&wiring));
        let (config, deps) = (Arc::new(config(host)), Arc::new(deps(host)));
        let new = move |crew| VolumeManager::new(crew, config.clone(), deps.clone());
        let manager = fakes::start(kernel, &wiring, new);
        Self { wiring, manager, events, objects }
    }

    /// Lines of events since the last look.
    pub(super) fn told(&self) -> Vec<String> {
        let lines = self.events.lines();
        self.events.forget();
        lines
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
