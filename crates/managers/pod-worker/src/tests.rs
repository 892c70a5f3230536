//! A worker among managers that answer as real ones would, with a runtime that keeps state.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actor::testing::run;
use actor::{ActorRef, Kernel, Spec};
use cgroup_values::{HostFacts, LimitRules};
use container_config::NodeSettings;
use contract::Wiring;
use contract::node::{NodeOrigin, NodeView};
use contract::pod_worker::{KillRequest, UpdateKind, UpdatePod, WorkerPhase, WorkerState};
use contract::runtime::{RunPodSandbox, RuntimeHandler, RuntimeInfo};
use contract::volume::{MountedVolume, MountedVolumes};
use cri_api::v1::ContainerConfig;
use fakes::{FakeNet, Objects};
use model::allocation::PendingResize;
use model::core::{Pod, PodStatus};
use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};
use model::{PodUid, Timestamp};
use serde_json::{Value, json};

use crate::{Config, Deps, PodWorker};

mod adopted;
mod crew;
mod ends;
mod hooks;
mod resize;
mod starts;

use crew::Crew;

const UID: &str = "u1";
const ASK: Duration = Duration::from_secs(5);

/// What the managers know, and what was said to them.
#[derive(Default)]
struct World {
    /// In order: events, statuses, calls of the runtime.
    words: Vec<String>,
    statuses: Vec<PodStatus>,
    observed: Option<PodObservation>,
    created: Vec<Arc<ContainerConfig>>,
    /// Sandboxes that were asked for.
    sandboxes: Vec<RunPodSandbox>,
    pull_secrets: Vec<Vec<String>>,
    /// Failure of the next `RunPodSandbox`: code and text.
    sandbox_fails: Option<(String, String)>,
    /// Failure of the next `StartContainer`.
    start_fails: Option<String>,
    volumes: MountedVolumes,
    /// The pod's cgroup.
    cgroup: contract::cgroup::PodCgroupUse,
    /// Failure of the next `UpdateContainerResources`.
    update_fails: Option<String>,
    /// Failure of every `EnsurePodCgroup`.
    cgroup_fails: Option<contract::cgroup::CgroupError>,
    /// Failure of every `MountVolumes`.
    volumes_fail: Option<contract::volume::VolumeError>,
}

type Shared = Arc<Mutex<World>>;

struct Bench {
    world: Shared,
    worker: ActorRef<PodWorker>,
    wiring: Wiring,
    objects: Objects,
    net: Arc<FakeNet>,
    journal: Arc<fakes::MemoryJournal>,
    _dir: tempfile::TempDir,
}

fn with_handlers(handlers: &[(&str, bool)]) -> RuntimeInfo {
    let handler = |(name, user_namespaces): &(&str, bool)| RuntimeHandler {
        name: (*name).to_owned(),
        recursive_read_only_mounts: true,
        user_namespaces: *user_namespaces,
    };
    RuntimeInfo { handlers: handlers.iter().map(handler).collect(), ..fakes::well() }
}

impl Bench {
    fn start(kernel: &Kernel, observed: PodObservation) -> Self {
        Self::start_with(kernel, observed, |_| ())
    }

    /// With a line of an earlier daemon in the journal.
    fn start_with_record(kernel: &Kernel, observed: PodObservation, record: &crate::memo::Record) -> Self {
        let journal = fakes::MemoryJournal::default();
        record.save(&journal, &UID.into()).unwrap();
        Self::start_on(kernel, observed, journal, |_| ())
    }

    fn start_with(kernel: &Kernel, observed: PodObservation, edit: impl FnOnce(&mut Config)) -> Self {
        Self::start_on(kernel, observed, fakes::MemoryJournal::default(), edit)
    }

    fn start_on(
        kernel: &Kernel,
        observed: PodObservation,
        journal: fakes::MemoryJournal,
        edit: impl FnOnce(&mut Config),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("root/pods").join(UID)).unwrap();
        let world = Shared::default();
        world.lock().unwrap().observed = Some(observed.clone());
        let wiring = Wiring::default();
        let managers = {
            let (world, wiring) = (world.clone(), wiring.clone());
            kernel.spawn(Spec::new("crew"), move |_| Crew { world: world.clone(), wiring: wiring.clone() })
        };
        crew::connect(&managers, &wiring);
        let (objects, net) = (Objects::on(&wiring, "ns"), Arc::new(FakeNet::default()));
        objects.put_class("kata", "kata-qemu");
        net.speak_plain_http();
        if observed.is_alive() {
            fakes::observe(&wiring, observed);
        }
        wiring.set(with_handlers(&[("kata-qemu", false)]));
        let mut config = config(dir.path().to_path_buf());
        edit(&mut config);
        let journal = Arc::new(journal);
        let deps = Arc::new(Deps {
            config: Arc::new(config),
            fs: Arc::new(fakes::LinuxFs),
            http: net.clone(),
            journal: journal.clone(),
        });
        let crew = wiring.member_crew(UID);
        let worker = kernel.spawn(Spec::new("pod-worker/u1"), move |_| {
            PodWorker::new(crew.succeed(), PodUid::from(UID), deps.clone())
        });
        Self { world, worker, wiring, objects, net, journal, _dir: dir }
    }

    async fn tell(&self, pod: &Pod, kind: UpdateKind) {
        self.tell_pending(pod, kind, None).await;
    }

    /// As `tell`; with a resize that is not granted.
    async fn tell_pending(&self, pod: &Pod, kind: UpdateKind, pending: Option<PendingResize>) {
        let update = UpdatePod { uid: UID.into(), pod: Some(Arc::new(pod.clone())), kind, pending, is_behind: false };
        self.worker.ask(update, ASK).await.unwrap();
        let_work().await;
    }

    async fn kill(&self, pod: &Pod, reason: &str, message: &str) {
        let reason = Some((reason.to_owned(), message.to_owned()));
        self.tell(pod, UpdateKind::Kill(KillRequest { evicted: true, reason, ..KillRequest::default() })).await;
    }

    /// Changes what the managers know.
    fn set(&self, f: impl FnOnce(&mut World)) {
        f(&mut self.world.lock().unwrap());
    }

    /// Handlers that the runtime says it has, and whether pods with users of their own run under them.
    fn handlers(&self, handlers: &[(&str, bool)]) {
        self.wiring.set(with_handlers(handlers));
    }

    fn see<T>(&self, f: impl FnOnce(&World) -> T) -> T {
        f(&self.world.lock().unwrap())
    }

    /// Messages of events of this reason, those that repeat once.
    fn events(&self, reason: &str) -> Vec<String> {
        let prefix = format!("event {reason} ");
        let mut all: Vec<String> =
            self.see(|w| w.words.iter().filter_map(|l| l.strip_prefix(&prefix)).map(str::to_owned).collect());
        all.dedup();
        all
    }

    fn last_status(&self) -> PodStatus {
        self.see(|w| w.statuses.last().cloned().unwrap_or_default())
    }

    /// Reason and message of the waiting container.
    fn waiting(&self) -> (String, String) {
        let status = self.last_status();
        let state = status.container_statuses.and_then(|c| c[0].state.clone()?.waiting).unwrap_or_default();
        (state.reason.unwrap_or_default(), state.message.unwrap_or_default())
    }

    /// Environment of the container that was created last.
    fn env(&self) -> BTreeMap<String, String> {
        let created = self.see(|w| w.created.last().cloned());
        let config =
            created.unwrap_or_else(|| panic!("no container was created: {:#?}", self.see(|w| w.words.clone())));
        config.envs.iter().map(|e| (e.key.clone(), String::from_utf8_lossy(&e.value).into_owned())).collect()
    }

    fn know_node(&self, addresses: &[&str], allocatable: &[(&str, &str)]) {
        let addresses: Vec<_> = addresses.iter().map(|a| json!({ "type": "InternalIP", "address": a })).collect();
        let allocatable: BTreeMap<_, _> = allocatable.iter().copied().collect();
        let json = json!({ "status": { "addresses": addresses, "allocatable": allocatable } });
        let node = Some(Arc::new(fakes::object(json)));
        self.wiring.set(NodeView { node, origin: NodeOrigin::Api, ..NodeView::default() });
    }

    /// The worker's row.
    fn row(&self) -> Arc<WorkerState> {
        self.wiring.board().get(&UID.into()).unwrap()
    }

    fn phase(&self) -> WorkerPhase {
        self.row().phase
    }
}

/// Runs a test around a worker of whose pod the runtime has nothing.
fn with_bench(test: impl AsyncFnOnce(Bench)) {
    run(1, async |kernel| test(Bench::start(&kernel, nothing())).await);
}

/// Long enough for a few steps, too short for a retry.
async fn let_work() {
    tokio::time::sleep(Duration::from_millis(500)).await;
}

fn config(dir: PathBuf) -> Config {
    let at = |name: &str| dir.join(name).to_string_lossy().into_owned();
    std::fs::write(dir.join("resolv.conf"), "nameserver 192.0.2.53\n").unwrap();
    Config {
        node: NodeSettings {
            root_dir: at("root"),
            pod_logs_dir: at("logs"),
            cluster_domain: String::new(),
            seccomp_default: false,
            selinux: false,
            thermal_throttle_paths: Vec::new(),
            host_ips: vec!["192.0.2.1".parse().unwrap()],
            allocatable: BTreeMap::new(),
        },
        facts: HostFacts { memory_capacity_bytes: 8 << 30, ..HostFacts::default() },
        rules: LimitRules::standard(),
        cluster_dns: Vec::new(),
        resolv_conf: Some(dir.join("resolv.conf")),
        container_logs_dir: dir.join("links"),
        sync_frequency: Duration::from_secs(60),
        crash_backoff_max: Duration::from_secs(300),
        restart_all_containers: true,
        resizable: model::allocation::Resizable::default(),
        dead_per_container: 1,
    }
}

/// A pod of the API with one container `app` of these fields and this rest of the specification.
fn pod(container: Value, spec: Value) -> Pod {
    let mut container = container;
    container["name"] = "app".into();
    container["image"] = "img".into();
    container["imagePullPolicy"] = "IfNotPresent".into();
    let mut spec = spec;
    spec["containers"] = json!([container]);
    spec["dnsPolicy"] = "Default".into();
    if spec.get("enableServiceLinks").is_none() {
        spec["enableServiceLinks"] = true.into();
    }
    let annotations = json!({ "kubernetes.io/config.source": "api" });
    let metadata = json!({ "name": "web", "namespace": "ns", "generation": 1, "annotations": annotations });
    fakes::pod(UID, json!({ "metadata": metadata, "spec": spec, "status": { "phase": "Pending" } }))
}

fn nothing() -> PodObservation {
    PodObservation::empty(UID.into(), "ns", "web")
}

fn sandbox(handler: &str) -> SandboxObservation {
    SandboxObservation {
        created_at: Timestamp::from_secs(10),
        host_network: Some(false),
        ips: Some(vec!["10.1.0.7".to_owned()]),
        runtime_handler: handler.to_owned(),
        ..SandboxObservation::new("sb", 0, true)
    }
}

pub(crate) fn container(id: &str, hash: u64) -> ContainerObservation {
    ContainerObservation {
        created_at: Timestamp::from_secs(11),
        started_at: Timestamp::from_secs(12),
        image: "img".to_owned(),
        image_ref: "img@sha256:1".to_owned(),
        hash: Some(hash),
        ..ContainerObservation::new(id, "app", "sb", ContainerState::Running)
    }
}

/// What an earlier daemon left running of this pod.
fn left_running(pod: &Pod) -> PodObservation {
    let mut out = nothing();
    out.sandboxes.push(sandbox(""));
    out.ips = vec!["10.1.0.7".parse().unwrap()];
    let hash = pod_plan::hash::spec_hash(&model::pod::regular_containers(pod)[0]);
    out.containers.push(container("c1", hash));
    out
}
