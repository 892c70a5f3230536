//! The typed configuration and its defaults, in sections: what one part of the node is given, or what changes together.

use crate::feature_gates::FeatureGates;

mod cgroups;
pub(crate) mod eviction;
mod host;
mod images;
mod logging;
mod node;
mod pods;
mod server;
mod shutdown;
mod tracing;

pub use cgroups::{Cgroups, Enforce, MemoryQos, NodeAllocatable, PodLimits, Reserved};
pub use eviction::{Eviction, SoftThreshold, Threshold};
pub use host::Host;
pub use images::{EMBEDDED, EmbeddedRuntime, Images, PullVerification, Runtime};
pub use logging::{FileVerbosity, LogFormat, Logging};
pub use node::{ApiAccess, ChangeDetection, NodeObject};
pub use pods::{ContainerLogs, Dns, PodSources, Pods};
pub use server::{Authentication, Authorization, AuthorizationMode, Healthz, Server, ServerTls, TlsVersion};
pub use shutdown::{NodeShutdown, ShutdownPeriod};
pub use tracing::{Tracing, TracingEndpoint};

/// The node's configuration. Names follow the fields of KubeletConfiguration; units are in the types. [`Default`] gives the
/// defaults of a kubelet 1.36 with an empty configuration file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeConfig {
    /// Where static pods come from.
    pub sources: PodSources,
    /// The way to the container runtime.
    pub runtime: Runtime,
    /// How cgroups are named and made, and which hosts are refused for theirs.
    pub cgroups: Cgroups,
    /// What is set up on the host itself, for everybody on it.
    pub host: Host,
    /// What is set aside before pods get anything, and where that is enforced.
    pub allocatable: NodeAllocatable,
    /// How resource numbers of pods become limits.
    pub limits: PodLimits,
    /// Names in pods.
    pub dns: Dns,
    /// Pulling images, and deleting those that nobody uses.
    pub images: Images,
    /// Pods: how many, how often they are looked after, and what they may do.
    pub pods: Pods,
    /// Rotation of container logs.
    pub container_logs: ContainerLogs,
    /// Requests to the API server: how many, with which credentials, and what is followed there.
    pub api: ApiAccess,
    /// The Node object: what it is made with, and how often its status is told.
    pub node: NodeObject,
    /// What the server on `port` offers, and to whom.
    pub server: Server,
    /// The health endpoint for this machine.
    pub healthz: Healthz,
    /// `evictionHard`, `evictionSoft` and what belongs to them. The hard thresholds of memory and disk count for node
    /// allocatable.
    pub eviction: Eviction,
    /// What pods have before the machine goes down.
    pub shutdown: NodeShutdown,
    /// The log of this daemon.
    pub logging: Logging,
    /// Spans of this daemon; `None`: there are none.
    pub tracing: Option<Tracing>,
    /// Feature gates, with what the file sets.
    pub feature_gates: FeatureGates,
}
