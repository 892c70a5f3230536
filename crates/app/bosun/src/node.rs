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
use std::sync::Arc;
use std::time::Duration;

use actor::{ActorRef, Group, Kernel, Managed, Place, Policy, Spec};
use config_sources::FolderWatch;
use contract::certificates::CertificateHandle;
use contract::cgroup::CgroupHandle;
use contract::config_sources::ConfigSourcesHandle;
use contract::event::EventHandle;
use contract::image::ImageHandle;
use contract::node::NodeHandle;
use contract::objects::ObjectHandle;
use contract::pod_manager::PodManagerHandle;
use contract::pod_worker::{WorkerFactory, WorkersView};
use contract::probe::ProbeHandle;
use contract::runtime::RuntimeHandle;
use contract::stats::StatsHandle;
use contract::status::StatusHandle;
use contract::volume::VolumeHandle;
use ports::api::ApiServer;
use ports::fetch::Fetch;
use ports::hook::HookHttp;
use ports::host::{CgroupFs, HostFs, Mounter, NodeHost};
use ports::journal::Journal;
use ports::log::Compress;
use ports::probe::NetProber;
use ports::runtime::{ContainerRuntime, ImageService};
use ports::stats::StatsSource;

use crate::settings::{Machine, Settings};

mod blame;
mod install;
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
    /// Changes of the folder of manifests.
    pub watch: Arc<dyn FolderWatch>,
    /// Compression of rotated logs.
    pub compress: Arc<dyn Compress>,
    /// What the Node object says of the machine.
    pub host: Arc<dyn NodeHost>,
    /// Mounts.
    pub mounter: Arc<dyn Mounter>,
    /// Cgroups.
    pub cgroups: Arc<dyn CgroupFs>,
    /// Counters of the kernel.
    pub stats: Arc<dyn StatsSource>,
    /// What outlives the daemon.
    pub journal: Arc<dyn Journal>,
    /// Probes over the network.
    pub prober: Arc<dyn NetProber>,
    /// Lifecycle hooks over HTTP.
    pub http: Arc<dyn HookHttp>,
    /// Documents by their URL (`staticPodURL`).
    pub fetch: Arc<dyn Fetch>,
    /// The API server; `None`: standalone.
    pub api: Option<Arc<dyn ApiServer>>,
    /// The API server with the bootstrap token, while there is no client certificate.
    pub bootstrap_api: Option<Arc<dyn ApiServer>>,
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
    pub stats: StatsHandle,
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
const INTAKE: [&str; 4] = ["config-sources", "http-source", "api-source", "pod-manager"];

/// Puts a manager into place.
pub type Installer = Box<dyn FnOnce(&Seat<'_>)>;

/// Collects replacements, then starts the crew.
pub struct Builder {
    settings: Settings,
    machine: Machine,
    outside: Outside,
    worker_place: Place,
    handles: Handles,
    runtime_client: Installer,
    event_recorder: Installer,
    object_store: Installer,
    certificate_manager: Installer,
    node_manager: Installer,
    status_manager: Installer,
    cgroup_manager: Installer,
    volume_manager: Installer,
    image_manager: Installer,
    probe_manager: Installer,
    stats_manager: Installer,
    log_manager: Installer,
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
        object_store,
        certificate_manager,
        node_manager,
        status_manager,
        cgroup_manager,
        volume_manager,
        image_manager,
        probe_manager,
        stats_manager,
        log_manager,
        pod_manager,
        config_sources
    );

    /// Where pod workers run; the thread of the managers unless set.
    #[must_use]
    pub fn worker_place(mut self, place: Place) -> Self {
        self.worker_place = place;
        self
    }

    /// How the managers will be reached; nobody answers before [`Self::start`].
    #[must_use]
    pub fn handles(&self) -> &Handles {
        &self.handles
    }

    /// Starts the crew, bottom up: whoever is asked is there before the asker.
    pub fn start(self, kernel: &Kernel) -> Node {
        let handles = self.handles;
        let core = kernel.group("core", Policy::default());
        let crew = kernel.group("workers", blame::workers_policy());
        blame::know_pods(kernel, handles.pods.view.clone(), handles.events.clone());
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
        (self.object_store)(&seat);
        (self.certificate_manager)(&seat);
        (self.runtime_client)(&seat);
        (self.node_manager)(&seat);
        (self.status_manager)(&seat);
        (self.cgroup_manager)(&seat);
        (self.volume_manager)(&seat);
        (self.image_manager)(&seat);
        (self.probe_manager)(&seat);
        (self.stats_manager)(&seat);
        (self.log_manager)(&seat);
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
            handles: Handles::default(),
            runtime_client: Box::new(install::runtime_client),
            event_recorder: Box::new(install::event_recorder),
            object_store: Box::new(install::object_store),
            certificate_manager: Box::new(install::certificate_manager),
            node_manager: Box::new(install::node_manager),
            status_manager: Box::new(install::status_manager),
            cgroup_manager: Box::new(install::cgroup_manager),
            volume_manager: Box::new(install::volume_manager),
            image_manager: Box::new(install::image_manager),
            probe_manager: Box::new(install::probe_manager),
            stats_manager: Box::new(install::stats_manager),
            log_manager: Box::new(install::log_manager),
            pod_manager: Box::new(install::pod_manager),
            config_sources: Box::new(install::config_sources),
        }
    }

    /// What the local server reads.
    #[must_use]
    pub fn views(&self, faults: bool) -> server::local::Views {
        server::local::Views {
            kernel: self.kernel.clone(),
            faults,
            node_name: self.settings.node_name.clone(),
            pods: self.handles.pods.view.clone(),
            workers: self.handles.workers.clone(),
            status: self.handles.status.view.clone(),
            runtime: self.handles.runtime.view.clone(),
            sources: self.handles.sources.view.clone(),
            events: self.handles.events.view.clone(),
            cluster: self.settings.flags.kubeconfig.is_some(),
            node: self.handles.node.view.clone(),
            api: self.handles.sources.api.clone(),
            certificates: self.handles.certificates.view.clone(),
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
