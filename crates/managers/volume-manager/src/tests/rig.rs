//! The manager on a disk in memory, with objects that an object store would have.

use std::sync::Arc;

use actor::{ActorRef, Kernel};
use contract::Wiring;
use contract::volume::{MountedVolumes, PodVolumes, VolumeError};
use fakes::{Events, Folder, Objects};
use model::PodUid;
use model::core::Pod;
use serde_json::{Value, json};

use crate::failed::Failed;
use crate::projected::Content;
use crate::set_up;
use crate::spec;
use crate::{Config, Deps, DesiredVolumes, IdRules, Serial, UserIds, VolumeManager, Volumes};

/// Root directory of the node on an empty disk.
pub(super) fn host() -> Folder {
    Folder::new("/kubelet")
}

pub(super) fn config(host: &Folder) -> Config {
    Config {
        root_dir: host.path(""),
        memory_allocatable_bytes: 8 << 30,
        node_name: "n1".to_owned(),
        controller_attach_detach: true,
        ids: IdRules { per_pod: 65_536, max_pods: 110 },
        ..Config::default()
    }
}

pub(super) fn deps(host: &Folder) -> Deps {
    Deps {
        fs: host.fs(),
        mounts: host.fs(),
        quotas: None,
        serial: Serial::default(),
        desired: DesiredVolumes::default(),
        persistent: Volumes::default(),
        user_ids: UserIds::default(),
        api: None,
        csi: None,
    }
}

pub(super) fn content() -> Content {
    let (fetched, persistent) = (projection::Fetched::default(), crate::placed::Outcomes::new());
    Content { fetched, persistent, now: model::Timestamp::from_secs(1_795_165_717), random: 1 }
}

/// Sets up volumes that hold no objects.
pub(super) fn all(deps: &Deps, config: &Config, pod: &Pod) -> Result<MountedVolumes, Vec<Failed>> {
    let out = all_with(deps, config, pod, &content());
    if out.failed.is_empty() { Ok(out.done) } else { Err(out.failed) }
}

/// Sets up all volumes, with this content.
pub(super) fn all_with(deps: &Deps, config: &Config, pod: &Pod, content: &Content) -> set_up::Outcome {
    let volumes: Vec<String> = spec::used_volumes(pod).iter().map(|(volume, _)| volume.name.clone()).collect();
    set_up::all((deps, config), pod, &volumes, content)
}

/// A pod whose one container mounts every volume of the list.
pub(super) fn pod(uid: &str, volumes: Value) -> Arc<Pod> {
    let mounts: Vec<Value> =
        volumes.as_array().unwrap().iter().map(|v| json!({"name": v["name"], "mountPath": "/m"})).collect();
    let spec = json!({"volumes": volumes, "containers": [{"name": "app", "volumeMounts": mounts}]});
    with_spec(uid, spec)
}

pub(super) fn with_spec(uid: &str, spec: Value) -> Arc<Pod> {
    Arc::new(fakes::pod(uid, json!({"spec": spec})))
}

#[derive(Clone)]
pub(super) struct Bench {
    pub(super) wiring: Wiring,
    pub(super) manager: ActorRef<VolumeManager>,
    pub(super) events: Events,
    pub(super) objects: Objects,
}

impl Bench {
    pub(super) fn start(kernel: &Kernel, host: &Folder) -> Self {
        Self::with(kernel, config(host), deps(host))
    }

    pub(super) fn with(kernel: &Kernel, config: Config, deps: Deps) -> Self {
        let wiring = Wiring::default();
        let (events, objects) = (Events::on(&wiring), Objects::on(&wiring, "default"));
        let (config, deps) = (Arc::new(config), Arc::new(deps));
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

/// Runs a test around a manager and its disk.
pub(super) fn with_bench(test: impl AsyncFnOnce(Bench, Folder)) {
    actor::testing::run(1, async |kernel| {
        let host = host();
        test(Bench::start(&kernel, &host), host).await;
    });
}

pub(super) fn paths(m: &Result<Arc<MountedVolumes>, VolumeError>) -> Vec<String> {
    let volumes = &m.as_ref().unwrap().volumes;
    volumes.values().map(|v| v.host_path.to_string_lossy().into_owned()).collect()
}
