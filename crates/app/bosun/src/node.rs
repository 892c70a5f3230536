//! The crew, put together: who exists, what each is given, who supervises whom.
//!
//! ```ignore
//! let node = Node::builder(settings, machine, ports)
//!     .probe_manager(|setup| {
//!         let net = setup.ports.prober.clone();
//!         setup.spawn(move |crew| acme_probes::ProbeManager::new(crew, net.clone()))
//!     })
//!     .start(&kernel);
//! ```

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use actor::{Family, Group, Handler, Kernel, Managed, Policy, Spec};
use config_sources::folder::FolderWatch;
use contract::pod_worker::{GrantStart, UpdatePod};
use contract::{Answers, Crew, PodWorker, Role, Wiring};
use model::PodUid;
use ports::api::ApiServer;
use ports::fetch::Fetch;
use ports::hook::HookHttp;
use ports::host::{CgroupFs, HostFs, Mounter, NodeHost};
use ports::journal::Journal;
use ports::log::Compress;
use ports::probe::NetProber;
use ports::runtime::{ContainerRuntime, ImageService};
use ports::stats::StatsSource;

use server::local::Views;

use crate::settings::{Machine, Settings};

mod crashes;
mod managers;

/// What the managers reach the world outside through.
#[derive(Clone)]
pub struct Ports {
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

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ports")
    }
}

/// What the actor of one role is made with: the settings, the ports, and how it is spawned.
pub struct Setup<'a, R: Role> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Settings of the node.
    pub settings: &'a Settings,
    /// Facts of the host.
    pub machine: &'a Machine,
    /// The world outside.
    pub ports: &'a Ports,
    wiring: &'a Wiring,
    groups: &'a Groups,
    intake: &'a RefCell<Vec<Stop>>,
    role: PhantomData<R>,
}

/// Who is restarted with whom.
struct Groups {
    core: Group,
    workers: Group,
}

/// Lets an actor work off its queue and end.
type Stop = Box<dyn Fn()>;

impl<R: Role> std::fmt::Debug for Setup<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Setup({})", R::NAME)
    }
}

impl<R: Role> Setup<'_, R> {
    /// Spawns the actor of the role, supervised among the managers, and sends it every message of the role. `factory` is
    /// called again for each restart, with the capabilities of that generation: those of the one before end.
    pub fn spawn<A: Answers<R>>(&self, mut factory: impl FnMut(Crew<R>) -> A + Send + 'static) {
        let crew = self.wiring.crew::<R>();
        let spec = Spec::new(R::DECLARATION.actor).group(&self.groups.core).mailbox(MANAGER_MAILBOX);
        let actor = self.kernel.spawn(spec, move |_generation| factory(crew.succeed()));
        self.wiring.connect::<R, A>(&actor);
        if R::DECLARATION.intake {
            self.intake.borrow_mut().push(Box::new(move || actor.stop()));
        }
    }
}

impl Setup<'_, PodWorker> {
    /// As [`Self::spawn`], with one actor per pod UID: made when the first message for it comes, until it is retired.
    pub fn spawn_per_pod<A>(&self, factory: impl Fn(Crew<PodWorker>, PodUid) -> A + Clone + Send + Sync + 'static)
    where
        A: Managed + Handler<UpdatePod> + Handler<GrantStart>,
    {
        let (kernel, wiring) = (self.kernel.clone(), self.wiring.clone());
        let group = self.groups.workers.clone();
        let family = Family::new(move |uid: &PodUid| {
            let spec = Spec::new(format!("{}/{uid}", PodWorker::DECLARATION.actor));
            let spec = spec.group(&group).mailbox(WORKER_MAILBOX);
            let (crew, uid, factory) = (wiring.member_crew::<PodWorker>(uid.as_str()), uid.clone(), factory.clone());
            kernel.spawn(spec, move |_generation| factory(crew.succeed(), uid.clone()))
        });
        self.wiring.connect_workers(&family);
    }
}

/// Messages that may wait at a manager; workers of a full node ask at the same time.
const MANAGER_MAILBOX: usize = 1024;
/// Messages that may wait at one worker; updates coalesce in it, so few are enough.
const WORKER_MAILBOX: usize = 32;

/// Sets up one role.
type SetUp<R> = Box<dyn FnOnce(&Setup<'_, R>)>;

macro_rules! builder {
    ($($other_field:ident: $other_role:ident),*; $($role_field:ident: $role:ident),* $(,)?) => {
        /// Collects replacements, then starts the crew.
        pub struct Builder {
            settings: Settings,
            machine: Machine,
            ports: Ports,
            wiring: Wiring,
            $($role_field: SetUp<contract::$role>,)*
        }

        impl Builder {
            $(
                /// Takes another manager for this role: `set_up` spawns it.
                #[must_use]
                pub fn $role_field(mut self, set_up: impl FnOnce(&Setup<'_, contract::$role>) + 'static) -> Self {
                    self.$role_field = Box::new(set_up);
                    self
                }
            )*

            /// Starts the crew, bottom up: whoever is asked is there before the asker.
            pub fn start(self, kernel: &Kernel) -> Node {
                let groups = Groups {
                    core: kernel.group("core", Policy::default()),
                    workers: kernel.group("workers", crashes::workers_policy()),
                };
                crashes::record_set_aside(kernel, self.wiring.crew());
                let intake = RefCell::default();
                $((self.$role_field)(&Setup {
                    kernel,
                    settings: &self.settings,
                    machine: &self.machine,
                    ports: &self.ports,
                    wiring: &self.wiring,
                    groups: &groups,
                    intake: &intake,
                    role: PhantomData,
                });)*
                let Builder { wiring, settings, .. } = self;
                Node { kernel: kernel.clone(), wiring, settings, intake: intake.into_inner() }
            }
        }

        impl Node {
            /// A node with all managers of this repository.
            #[must_use]
            pub fn builder(settings: Settings, machine: Machine, ports: Ports) -> Builder {
                Builder {
                    settings,
                    machine,
                    ports,
                    wiring: Wiring::default(),
                    $($role_field: Box::new(managers::$role_field),)*
                }
            }
        }
    };
}
contract::for_each_role!(builder);

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("node::Builder")
    }
}

impl Builder {
    /// How the managers will be reached; nobody answers before [`Self::start`].
    #[must_use]
    pub fn wiring(&self) -> &Wiring {
        &self.wiring
    }
}

/// A running node.
pub struct Node {
    kernel: Kernel,
    /// How to reach the managers.
    pub wiring: Wiring,
    settings: Settings,
    intake: Vec<Stop>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({})", self.settings.node_name)
    }
}

impl Node {
    /// What the local server reads.
    #[must_use]
    pub fn views(&self, faults: bool) -> Views {
        let views = Views::new(&self.wiring.crew(), self.kernel.clone(), self.settings.node_name.clone());
        Views { faults, cluster: self.settings.flags.kubeconfig.is_some(), ..views }
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
