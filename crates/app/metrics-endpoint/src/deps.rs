//! Where the numbers come from.

use std::fmt;
use std::sync::Arc;

use actor::Kernel;
use contract::board::{BoardReader, ValueReader};
use contract::certificates::CertificateView;
use contract::lookup::PodLookup;
use contract::plugin::PluginSocket;
use contract::pod_worker::WorkerState;
use contract::volume::VolumeRow;
use futures::future::BoxFuture;
use model::PodUid;

/// Where the numbers come from. Cheap to clone.
#[derive(Clone)]
pub struct Deps {
    /// Actors; clock.
    pub kernel: Kernel,
    /// Pods: desired, their status, what the runtime has.
    pub lookup: PodLookup,
    /// Workers.
    pub workers: BoardReader<PodUid, WorkerState>,
    /// Volumes.
    pub volumes: VolumeSource,
    /// Plugins that register themselves.
    pub plugins: BoardReader<String, PluginSocket>,
    /// Certificates.
    pub certificates: ValueReader<CertificateView>,
    /// The node keeps its client certificate itself (`rotateCertificates` or bootstrap): its life is told.
    pub client_certificate_managed: bool,
    /// `serverTLSBootstrap`: the serving certificate's life is told.
    pub serving_certificate_managed: bool,
    /// Name of the node.
    pub node_name: String,
    /// All feature gates.
    pub feature_gates: Arc<[FeatureGate]>,
    /// What was built.
    pub build: BuildInfo,
    /// Runs the health checks of `/healthz` and tells each by name; called at scrapes of `/metrics/slis`.
    pub health_checks: HealthChecks,
    /// Looks what managers in other processes have counted; absent: there are none.
    pub elsewhere: Option<Elsewhere>,
    /// Usage of claims and logs; absent: those families are absent.
    pub usage: Option<UsageSource>,
}

impl fmt::Debug for Deps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "metrics_endpoint::Deps({})", self.node_name)
    }
}

/// Runs all health checks: name, and whether it was good.
pub type HealthChecks = Arc<dyn Fn() -> Vec<(String, bool)> + Send + Sync>;
/// All volumes that are known.
pub type VolumeRows = Arc<Vec<VolumeRow>>;
/// Asks for all volumes; `None`: there is no answer.
pub type VolumeSource = Arc<dyn Fn() -> BoxFuture<'static, Option<VolumeRows>> + Send + Sync>;
/// Asks each manager in another process what it has counted, and has it told (`metrics::elsewhere`).
pub type Elsewhere = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;
/// Reads usage, from what was measured last if that is fresh enough.
pub type UsageSource = Arc<dyn Fn() -> BoxFuture<'static, Usage> + Send + Sync>;

/// A feature gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureGate {
    /// Name.
    pub name: String,
    /// `ALPHA`, `BETA`, `DEPRECATED`; empty: generally available.
    pub stage: String,
    /// Its value.
    pub enabled: bool,
}

/// Labels of `kubernetes_build_info`. `git_version` is the Kubernetes version that the node claims: the alert
/// KubeVersionMismatch compares it with the others'.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each field is the label that it is named after")]
pub struct BuildInfo {
    pub major: String,
    pub minor: String,
    pub git_version: String,
    pub git_commit: String,
    pub git_tree_state: String,
    pub build_date: String,
    /// There is no Go here: the compiler that there is, e.g. `rustc1.95.0`.
    pub go_version: String,
    pub compiler: String,
    pub platform: String,
}

/// What pods use. Absent numbers are unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// One row per claim, also when several pods use it.
    pub claims: Vec<ClaimUsage>,
    /// Logs of containers.
    pub logs: Vec<LogUsage>,
}

/// A PersistentVolumeClaim's volume.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "each field is the label or the metric that it is named after")]
pub struct ClaimUsage {
    pub namespace: String,
    pub claim: String,
    pub capacity_bytes: Option<u64>,
    pub available_bytes: Option<u64>,
    pub used_bytes: Option<u64>,
    pub inodes: Option<u64>,
    pub inodes_free: Option<u64>,
    pub inodes_used: Option<u64>,
    pub abnormal: Option<bool>,
}

/// A container's logs.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "each field is the label or the metric that it is named after")]
pub struct LogUsage {
    pub uid: String,
    pub namespace: String,
    pub pod: String,
    pub container: String,
    pub used_bytes: u64,
}
