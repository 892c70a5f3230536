//! The crew, put together: who exists, what each is given, who supervises whom.
//!
//! ```ignore
//! let node = Node::builder(settings, machine, outside)
//!     .probe_manager(|seat| {
//!         let deps = acme_probe::Deps::new(seat.handles.runtime.clone());
//!         let actor = seat.spawn("probe-manager", move |_generation| acme_probe::ProbeManager::new(deps.clone()));
//!         seat.handles.probes.connect(&actor);
//!     })
//!     .start(&kernel);
//! ```

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actor::{ActorRef, Group, Kernel, Managed, Place, Policy, Spec};
use cgroup_values::PodTree;
use contract::certificates::CertificateHandle;
use contract::cgroup::CgroupHandle;
use contract::config_sources::{ConfigSourcesHandle, Source};
use contract::event::EventHandle;
use contract::image::ImageHandle;
use contract::node::NodeHandle;
use contract::objects::ObjectHandle;
use contract::pod_manager::PodManagerHandle;
use contract::pod_worker::{WorkerFactory, WorkersView};
use contract::probe::ProbeHandle;
use contract::runtime::RuntimeHandle;
use contract::status::StatusHandle;
use contract::volume::VolumeHandle;
use model::Timestamp;
use ports::api::ApiServer;
use ports::hook::HookHttp;
use ports::host::{CgroupFs, HostFs, Mounter};
use ports::journal::Journal;
use ports::probe::NetProber;
use ports::runtime::{ContainerRuntime, ImageService};

use crate::settings::{Machine, Settings, limit_rules, node_labels, reservations};

mod workers;

/// Everything that is not an actor: the outside world behind ports.
#[derive(Clone)]
pub struct Outside {
    /// CRI runtime service.
    pub runtime: Arc<dyn ContainerRuntime>,
    /// CRI image service.
    pub images: Arc<dyn ImageService>,
    /// Files.
    pub fs: Arc<dyn HostFs>,
    /// Mounts.
    pub mounter: Arc<dyn Mounter>,
    /// Cgroups.
    pub cgroups: Arc<dyn CgroupFs>,
    /// What outlives the daemon.
    pub journal: Arc<dyn Journal>,
    /// Probes over the network.
    pub prober: Arc<dyn NetProber>,
    /// Lifecycle hooks over HTTP.
    pub http: Arc<dyn HookHttp>,
    /// The API server; `None`: standalone.
    pub api: Option<Arc<dyn ApiServer>>,
}

impl std::fmt::Debug for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Outside")
    }
}

/// How managers reach each other. Boards and routes live here, so they outlive every actor.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "each field is the handle of the manager it is named after")]
pub struct Handles {
    pub runtime: RuntimeHandle,
    pub images: ImageHandle,
    pub volumes: VolumeHandle,
    pub cgroups: CgroupHandle,
    pub probes: ProbeHandle,
    pub status: StatusHandle,
    pub events: EventHandle,
    pub pods: PodManagerHandle,
    pub sources: ConfigSourcesHandle,
    pub workers: WorkersView,
    pub node: NodeHandle,
    pub objects: ObjectHandle,
    pub certificates: CertificateHandle,
}

/// What an installer gets to put its manager into place.
pub struct Seat<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Supervision group of the managers.
    pub group: &'a Group,
    /// All handles; connect the one of the manager that is being installed.
    pub handles: &'a Handles,
    /// Settings of the node.
    pub settings: &'a Settings,
    /// Facts of the host.
    pub machine: &'a Machine,
    /// The outside world.
    pub outside: &'a Outside,
    /// Makes pod workers; for whoever installs PodManager.
    pub new_worker: &'a WorkerFactory,
    spawned: RefCell<Vec<(&'static str, Stop)>>,
}

/// Lets an actor work off its queue and end.
type Stop = Box<dyn Fn()>;

impl std::fmt::Debug for Seat<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seat")
    }
}

impl Seat<'_> {
    /// Spawns a manager's actor, supervised in its group. The factory is called again for each restart.
    pub fn spawn<A>(&self, name: &'static str, factory: impl FnMut(u64) -> A + Send + 'static) -> ActorRef<A>
    where
        A: Managed,
    {
        let actor = self.kernel.spawn(Spec::new(name).group(self.group).mailbox(MANAGER_MAILBOX), factory);
        let stop = actor.clone();
        self.spawned.borrow_mut().push((name, Box::new(move || stop.stop())));
        actor
    }
}

/// Messages that may wait at a manager; workers of a full node ask at the same time.
const MANAGER_MAILBOX: usize = 1024;

/// Who ends first at shutdown: where changes come in.
const INTAKE: [&str; 2] = ["config-sources", "pod-manager"];

/// Puts a manager into place.
pub type Installer = Box<dyn FnOnce(&Seat<'_>)>;

/// Collects replacements, then starts the crew.
pub struct Builder {
    settings: Settings,
    machine: Machine,
    outside: Outside,
    worker_place: Place,
    runtime_client: Installer,
    event_recorder: Installer,
    status_manager: Installer,
    cgroup_manager: Installer,
    volume_manager: Installer,
    image_manager: Installer,
    probe_manager: Installer,
    pod_manager: Installer,
    config_sources: Installer,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("node::Builder")
    }
}

macro_rules! replaceable {
    ($($name:ident),*) => {
        $(
            /// Installs another manager in this place.
            #[must_use]
            pub fn $name(mut self, installer: impl FnOnce(&Seat<'_>) + 'static) -> Self {
                self.$name = Box::new(installer);
                self
            }
        )*
    };
}

impl Builder {
    replaceable!(
        runtime_client,
        event_recorder,
        status_manager,
        cgroup_manager,
        volume_manager,
        image_manager,
        probe_manager,
        pod_manager,
        config_sources
    );

    /// Where pod workers run; the thread of the managers unless set.
    #[must_use]
    pub fn worker_place(mut self, place: Place) -> Self {
        self.worker_place = place;
        self
    }

    /// Starts the crew, bottom up: whoever is asked is there before the asker.
    pub fn start(self, kernel: &Kernel) -> Node {
        let handles = Handles::default();
        let core = kernel.group("core", Policy::default());
        let crew = kernel.group("workers", Policy { max_restarts: 200, ..Policy::default() });
        let world = workers::World {
            settings: &self.settings,
            machine: &self.machine,
            handles: &handles,
            outside: &self.outside,
        };
        let new_worker = workers::factory(kernel, &world, crew, self.worker_place.clone());
        let seat = Seat {
            kernel,
            group: &core,
            handles: &handles,
            settings: &self.settings,
            machine: &self.machine,
            outside: &self.outside,
            new_worker: &new_worker,
            spawned: RefCell::default(),
        };
        (self.event_recorder)(&seat);
        (self.runtime_client)(&seat);
        (self.status_manager)(&seat);
        (self.cgroup_manager)(&seat);
        (self.volume_manager)(&seat);
        (self.image_manager)(&seat);
        (self.probe_manager)(&seat);
        (self.pod_manager)(&seat);
        (self.config_sources)(&seat);
        let mut spawned = seat.spawned.take();
        spawned.retain(|(name, _)| INTAKE.contains(name));
        let intake = spawned.into_iter().map(|(_, stop)| stop).collect();
        Node { kernel: kernel.clone(), handles, settings: self.settings, intake }
    }
}

/// A running node.
pub struct Node {
    kernel: Kernel,
    /// How to reach the managers.
    pub handles: Handles,
    settings: Settings,
    intake: Vec<Stop>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({})", self.settings.node_name)
    }
}

impl Node {
    /// A node with all managers of this repository.
    #[must_use]
    pub fn builder(settings: Settings, machine: Machine, outside: Outside) -> Builder {
        Builder {
            settings,
            machine,
            outside,
            worker_place: Place::Here,
            runtime_client: Box::new(install_runtime_client),
            event_recorder: Box::new(install_event_recorder),
            status_manager: Box::new(install_status_manager),
            cgroup_manager: Box::new(install_cgroup_manager),
            volume_manager: Box::new(install_volume_manager),
            image_manager: Box::new(install_image_manager),
            probe_manager: Box::new(install_probe_manager),
            pod_manager: Box::new(install_pod_manager),
            config_sources: Box::new(install_config_sources),
        }
    }

    /// What the local server reads.
    #[must_use]
    pub fn views(&self, faults: bool) -> server::local::Views {
        server::local::Views {
            kernel: self.kernel.clone(),
            faults,
            node_name: self.settings.node_name.clone(),
            pod_logs_dir: self.settings.config.pod_logs_dir.clone(),
            pods: self.handles.pods.view.clone(),
            workers: self.handles.workers.clone(),
            status: self.handles.status.view.clone(),
            runtime: self.handles.runtime.view.clone(),
            sources: self.handles.sources.view.clone(),
            events: self.handles.events.view.clone(),
        }
    }

    /// Ends intake first, then gives steps under way a moment to reach a good place. Pods go on running.
    pub async fn stop(&self) {
        for stop in &self.intake {
            stop();
        }
        let settled = async {
            loop {
                let busy = self.kernel.directory().actors().iter().any(|a| a.mailbox_depth > 0);
                if !busy {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _in_time = tokio::time::timeout(Duration::from_secs(5), settled).await.is_ok();
    }
}

fn install_event_recorder(seat: &Seat<'_>) {
    let view = seat.handles.events.view.clone();
    let a = seat.spawn("event-recorder", move |_| {
        event_recorder::EventRecorder::new(event_recorder::Config::default(), view.clone())
    });
    seat.handles.events.connect(&a);
}

fn install_runtime_client(seat: &Seat<'_>) {
    let deps = runtime_client::Deps::new(seat.outside.runtime.clone(), seat.handles.runtime.view.clone());
    let a = seat.spawn("runtime-client", move |_| runtime_client::RuntimeClient::new(deps.clone()));
    seat.handles.runtime.connect(&a);
}

fn install_status_manager(seat: &Seat<'_>) {
    let view = seat.handles.status.view.clone();
    let a = seat.spawn("status-manager", move |_| status_manager::StatusManager::new(view.clone()));
    seat.handles.status.connect(&a);
}

fn tree(settings: &Settings) -> PodTree {
    PodTree::new(&settings.config.cgroup_root, settings.cgroup_driver)
}

fn install_cgroup_manager(seat: &Seat<'_>) {
    let config = Arc::new(cgroup_manager::Config {
        enabled: seat.settings.config.cgroups_per_qos,
        tree: tree(seat.settings),
        rules: limit_rules(&seat.settings.config, seat.machine.facts.cgroup_v2),
        facts: seat.machine.facts.clone(),
        capacity: seat.machine.capacity.clone(),
        reserved: reservations(&seat.settings.config),
        enforce_pods: seat.settings.config.enforce_node_allocatable.contains(&node_config::Enforce::Pods),
        oom_score_adj: Some(i64::from(seat.settings.config.oom_score_adj)),
    });
    let deps = Arc::new(cgroup_manager::Deps {
        cgroups: seat.outside.cgroups.clone(),
        view: seat.handles.cgroups.view.clone(),
        pods: seat.handles.pods.view.clone(),
        events: seat.handles.events.clone(),
        serial: cgroup_manager::Serial::default(),
    });
    let a = seat.spawn("cgroup-manager", move |_| cgroup_manager::CgroupManager::new(config.clone(), deps.clone()));
    seat.handles.cgroups.connect(&a);
}

fn install_probe_manager(seat: &Seat<'_>) {
    let h = seat.handles;
    let mut deps = probe_manager::Deps::new(
        h.runtime.clone(),
        h.events.clone(),
        h.status.view.clone(),
        h.probes.view.clone(),
        seat.outside.prober.clone(),
    );
    deps.journal = Some(seat.outside.journal.clone());
    let config = probe_manager::Config::new(Timestamp(seat.kernel.clock().unix_nanos()));
    let a = seat.spawn("probe-manager", move |_| probe_manager::ProbeManager::new(deps.clone(), config.clone()));
    seat.handles.probes.connect(&a);
}

fn install_pod_manager(seat: &Seat<'_>) {
    let facts = pod_admission::NodeFacts {
        allocatable: seat.machine.allocatable.clone(),
        labels: node_labels(seat.settings),
        unsafe_sysctls: seat.settings.config.allowed_unsafe_sysctls.clone(),
        ..pod_admission::NodeFacts::default()
    };
    let admission: pod_manager::Admission = Arc::new(move |pod, active| {
        pod_admission::admit(pod, active.iter().map(|p| &**p), &facts).map_err(|r| (r.reason, r.message))
    });
    let config = Arc::new(pod_manager::Config {
        sources: seat.settings.config.static_pod_path.iter().map(|_| Source::File).collect::<BTreeSet<_>>(),
        housekeeping: Duration::from_secs(2),
        gc_period: Duration::from_secs(60),
        gc: pod_manager::gc::GcPolicy::default(),
        pod_logs_dir: seat.settings.config.pod_logs_dir.clone(),
        container_logs_dir: seat.settings.container_logs_dir.clone(),
    });
    let h = seat.handles;
    let deps = Arc::new(pod_manager::Deps {
        view: h.pods.view.clone(),
        workers: h.workers.clone(),
        new_worker: seat.new_worker.clone(),
        admission,
        runtime: h.runtime.clone(),
        status: h.status.clone(),
        probes: h.probes.clone(),
        volumes: h.volumes.clone(),
        cgroups: h.cgroups.clone(),
        events: h.events.clone(),
        fs: seat.outside.fs.clone(),
        journal: seat.outside.journal.clone(),
    });
    let a = seat.spawn("pod-manager", move |_| pod_manager::PodManager::new(config.clone(), deps.clone()));
    seat.handles.pods.connect(&a);
}

fn install_image_manager(seat: &Seat<'_>) {
    let config = &seat.settings.config;
    let parallel = config.max_parallel_image_pulls.and_then(|n| usize::try_from(n).ok());
    let view = seat.handles.images.view.clone();
    let deps = Arc::new(image_manager::Deps {
        images: seat.outside.images.clone(),
        events: seat.handles.events.clone(),
        slots: image_manager::Slots::new(config.serialize_image_pulls, parallel, view),
    });
    let limit = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let config = image_manager::Config {
        registry_qps: limit(config.registry_pull_qps),
        registry_burst: limit(config.registry_burst),
    };
    let a = seat.spawn("image-manager", move |_| image_manager::ImageManager::new(&config, deps.clone()));
    seat.handles.images.connect(&a);
}

fn install_config_sources(seat: &Seat<'_>) {
    let Some(path) = seat.settings.config.static_pod_path.clone() else { return };
    let config = Arc::new(config_sources::Config {
        node_name: seat.settings.node_name.clone(),
        path,
        period: seat.settings.config.file_check_frequency,
    });
    let deps = config_sources::Deps {
        watch: Arc::new(config_sources::InotifyWatch),
        view: seat.handles.sources.view.clone(),
        pods: seat.handles.pods.clone(),
        events: seat.handles.events.clone(),
    };
    // It is asked by nobody: nothing to connect.
    seat.spawn("config-sources", move |_| config_sources::ConfigSources::new(config.clone(), deps.clone()));
}

fn install_volume_manager(seat: &Seat<'_>) {
    let memory = seat.machine.allocatable.get(model::resources::MEMORY).map_or(0, |q| q.value());
    let config =
        Arc::new(volume_manager::Config { root_dir: seat.settings.root_dir.clone(), memory_allocatable_bytes: memory });
    let deps = Arc::new(volume_manager::Deps {
        fs: seat.outside.fs.clone(),
        mounts: seat.outside.mounter.clone(),
        view: seat.handles.volumes.view.clone(),
        events: seat.handles.events.clone(),
        serial: volume_manager::Serial::default(),
    });
    let a = seat.spawn("volume-manager", move |_| volume_manager::VolumeManager::new(config.clone(), deps.clone()));
    seat.handles.volumes.connect(&a);
}
