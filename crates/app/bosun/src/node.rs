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

use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actor::{Family, Group, Handler, Kernel, Managed, Policy, Spec};
use contract::pod_worker::{GrantStart, UpdatePod};
use contract::{Answers, Crew, PodWorker, Role, Wiring};
use futures::FutureExt;
use model::PodUid;
use ports::api::ApiServer;
use ports::csi::CsiNode;
use ports::fetch::Fetch;
use ports::hook::HookHttp;
use ports::host::{CgroupFs, HostFs, Mounter, NodeHost, ProjectQuotas};
use ports::journal::Journal;
use ports::kernel_log::KernelLog;
use ports::log::Compress;
use ports::logind::Logind;
use ports::memory_alarm::MemoryAlarm;
use ports::plugin::PluginRegistration;
use ports::probe::NetProber;
use ports::runtime::{ContainerRuntime, ImageService};
use ports::stats::StatsSource;
use ports::watch::FolderWatch;

use server::local::Views;

use crate::settings::{Machine, Settings};

mod crashes;
pub(crate) mod elsewhere;
mod managers;
mod places;
mod serving;

use managers::Kept;
use serving::{AllServing, Line, Serving};

pub use places::Places;
pub use serving::HANDOVER;

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
    /// What the kernel says.
    pub kernel_log: Arc<dyn KernelLog>,
    /// What it says of memory.
    pub memory_alarm: Arc<dyn MemoryAlarm>,
    /// Who shuts the machine down.
    pub logind: Arc<dyn Logind>,
    /// What the Node object says of the machine.
    pub host: Arc<dyn NodeHost>,
    /// Mounts.
    pub mounter: Arc<dyn Mounter>,
    /// What file systems count by project.
    pub quotas: Arc<dyn ProjectQuotas>,
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
    /// Plugins that register themselves.
    pub plugins: Arc<dyn PluginRegistration>,
    /// CSI drivers.
    pub csi: Arc<dyn CsiNode>,
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
    kept: &'a Kept,
    wiring: &'a Wiring,
    groups: &'a Groups,
    serving: &'a AllServing,
    role: PhantomData<R>,
}

/// Who is restarted with whom.
struct Groups {
    core: Group,
    workers: Group,
}

impl<R: Role> std::fmt::Debug for Setup<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Setup({})", R::NAME)
    }
}

impl<R: Role> Setup<'_, R> {
    /// Spawns the actor of the role, supervised among the managers, and sends it every message of the role. `factory` is
    /// called again for each restart, with the capabilities of that generation: those of the one before end.
    ///
    /// Where the role is served already ([`Node::replace`]) the actor is built when the former one is gone: see there. It is told
    /// first what its role declares to be remembered.
    pub fn spawn<A: Answers<R>>(&self, factory: impl FnMut(Crew<R>) -> A + Send + 'static) {
        self.put(factory, MANAGER_MAILBOX + self.wiring.reminders::<R>());
        let lost = self.wiring.remind::<R>();
        if lost > 0 {
            tracing::error!(role = R::NAME, lost, "what it should remember finds no room");
        }
    }

    /// As [`Self::spawn`], for what stands in for an actor elsewhere and tells it itself what is remembered.
    fn spawn_stand_in<A: Answers<R>>(&self, factory: impl FnMut(Crew<R>) -> A + Send + 'static) {
        self.put(factory, MANAGER_MAILBOX);
    }

    fn put<A: Answers<R>>(&self, mut factory: impl FnMut(Crew<R>) -> A + Send + 'static, mailbox: usize) {
        let mut spec = Spec::new(R::DECLARATION.actor).group(&self.groups.core).mailbox(mailbox);
        let before = self.serving.take(R::NAME).map(|former| former.end(R::NAME, None).shared());
        if let Some(before) = before.clone() {
            spec = spec.after(before);
        }
        let mut line = Line::of(self.wiring, None);
        let actor = self.kernel.spawn(spec, move |_generation| factory(line.next()));
        self.wiring.connect::<R, A>(&actor);
        self.serving.put(R::NAME, Serving::one(actor, before));
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
        let former = self.serving.take(PodWorker::NAME);
        let pods = former.as_ref().map(Serving::members).unwrap_or_default();
        let family = Family::new(move |uid: &PodUid| {
            let mut spec = Spec::new(format!("{}/{uid}", PodWorker::DECLARATION.actor));
            spec = spec.group(&group).mailbox(WORKER_MAILBOX);
            if let Some(former) = &former {
                spec = spec.after(former.end(PodWorker::NAME, Some(uid)));
            }
            let mut line = Line::of(&wiring, Some(uid));
            let (uid, factory) = (uid.clone(), factory.clone());
            kernel.spawn(spec, move |_generation| factory(line.next(), uid.clone()))
        });
        self.wiring.connect_workers(&family);
        // Workers act on their own: those of before are not left running until somebody writes to their pod.
        for uid in pods {
            family.member_or_new(&uid);
        }
        self.serving.put(PodWorker::NAME, Serving::family(family));
    }
}

/// Messages that may wait at a manager; workers of a full node ask at the same time.
const MANAGER_MAILBOX: usize = 1024;
/// Messages that may wait at one worker; updates coalesce in it, so few are enough.
const WORKER_MAILBOX: usize = 32;

/// How long the end waits for steps under way.
const LAST_STEPS: Duration = Duration::from_secs(5);

/// Sets up one role.
type SetUp<R> = Rc<dyn Fn(&Setup<'_, R>)>;

macro_rules! builder {
    ($($other_field:ident: $other_role:ident),*; $($role_field:ident: $role:ident),* $(,)?) => {
        /// Collects replacements, then starts the crew.
        pub struct Builder {
            settings: Settings,
            machine: Machine,
            ports: Ports,
            wiring: Wiring,
            when_up: Vec<Box<dyn FnOnce(&Node)>>,
            $($role_field: SetUp<contract::$role>,)*
        }

        impl Builder {
            $(
                /// Takes another manager for this role: `set_up` spawns it, again after another one had the place.
                #[must_use]
                pub fn $role_field(mut self, set_up: impl Fn(&Setup<'_, contract::$role>) + 'static) -> Self {
                    self.$role_field = Rc::new(set_up);
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
                let node = Node(Rc::new(Parts {
                    kernel: kernel.clone(),
                    kept: Kept::new(&self.settings.config),
                    wiring: self.wiring,
                    settings: self.settings,
                    machine: self.machine,
                    ports: self.ports,
                    groups,
                    serving: AllServing::default(),
                }));
                $((self.$role_field)(&node.setup());)*
                for told in self.when_up {
                    told(&node);
                }
                node
            }
        }

        impl Node {
            /// Gives the role of this name to another actor of the kind that is built in, as [`Node::replace`] does; `false`: there
            /// is no such role.
            pub fn renew(&self, role: &str) -> bool {
                match role {
                    $(<contract::$role as Role>::NAME => self.replace::<contract::$role>(managers::$role_field),)*
                    _ => return false,
                }
                true
            }

            /// A node with all managers of this repository.
            #[must_use]
            pub fn builder(settings: Settings, machine: Machine, ports: Ports) -> Builder {
                Builder {
                    settings,
                    machine,
                    ports,
                    wiring: Wiring::default(),
                    when_up: Vec::new(),
                    $($role_field: Rc::new(managers::$role_field),)*
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
    /// Called once the node is up, on the thread of its managers: for whoever will replace one later.
    #[must_use]
    pub fn when_up(mut self, told: impl FnOnce(&Node) + 'static) -> Self {
        self.when_up.push(Box::new(told));
        self
    }

    /// How the managers will be reached; nobody answers before [`Self::start`].
    #[must_use]
    pub fn wiring(&self) -> &Wiring {
        &self.wiring
    }
}

/// A running node. A clone is the same node. It stays on the thread of its managers.
#[derive(Clone)]
pub struct Node(Rc<Parts>);

struct Parts {
    kernel: Kernel,
    wiring: Wiring,
    settings: Settings,
    machine: Machine,
    ports: Ports,
    kept: Kept,
    groups: Groups,
    serving: AllServing,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({})", self.0.settings.node_name)
    }
}

impl Node {
    /// How to reach the managers.
    #[must_use]
    pub fn wiring(&self) -> &Wiring {
        &self.0.wiring
    }

    /// What the local server reads.
    #[must_use]
    pub fn views(&self, faults: bool) -> Views {
        let Parts { kernel, wiring, settings, .. } = &*self.0;
        let views = Views::new(&wiring.crew(), kernel.clone(), settings.node_name.clone());
        Views { faults, cluster: settings.flags.kubeconfig.is_some(), ..views }
    }

    fn setup<R: Role>(&self) -> Setup<'_, R> {
        let Parts { kernel, wiring, settings, machine, ports, kept, groups, serving } = &*self.0;
        Setup { kernel, settings, machine, ports, kept, wiring, groups, serving, role: PhantomData }
    }

    /// Gives a role to another actor while the node runs; `set_up` spawns it, as at the start. In this order: from now on
    /// messages wait at the new actor; the old one handles what it was sent before, its posts count as before, and it ends;
    /// then the right to post goes over, and the new one is built. Nothing that was answered is lost. What the old one had
    /// begun and not answered by then is answered `Crashed`, and its caller does what the declaration says.
    ///
    /// An old actor that does not come to its end within [`HANDOVER`] loses its right to post all the same; that is logged.
    pub fn replace<R: Role>(&self, set_up: impl FnOnce(&Setup<'_, R>)) {
        tracing::info!(role = R::NAME, "another actor takes the place");
        set_up(&self.setup());
    }

    /// Ends intake first, then gives steps under way a moment to reach a good place. Pods go on running.
    pub async fn stop(&self) {
        let Parts { kernel, groups, serving, .. } = &*self.0;
        for intake in contract::DECLARATIONS.iter().filter(|d| d.intake) {
            serving.stop(intake.role);
        }
        // A call under way is an effect of its pod's worker, not a message.
        let busy = || groups.workers.under_way() > 0 || kernel.directory().actors().iter().any(|a| a.mailbox_depth > 0);
        let settled = async {
            while busy() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _in_time = tokio::time::timeout(LAST_STEPS, settled).await.is_ok();
    }
}
