//! Settings, and the ports that the manager works with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cgroup_values::PodTree;
use ports::csi::CsiNode;
use ports::host::ProjectQuotas;
use ports::runtime::{ContainerRuntime, ImageService};
use ports::stats::StatsSource;

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the Node.
    pub node_name: String,
    /// Root directory (`--root-dir`).
    pub root_dir: PathBuf,
    /// Logs of pods (`podLogsDir`).
    pub pod_logs_dir: PathBuf,
    /// Where pods' cgroups are (`cgroupRoot`, driver); `None` without `cgroupsPerQOS`.
    pub tree: Option<PodTree>,
    /// `kubeletCgroups`; empty: the cgroup that the daemon finds itself in.
    pub kubelet_cgroup: String,
    /// `--runtime-cgroups`; empty: not known.
    pub runtime_cgroup: String,
    /// `systemCgroups`; empty: not known.
    pub system_cgroup: String,
    /// `volumeStatsAggPeriod`; `None` (zero or negative there): volumes are not measured.
    pub volume_period: Option<Duration>,
    /// Gate `CSIVolumeHealth`: what drivers say of the health of their volumes is told.
    pub volume_health: bool,
}

/// What StatsManager works with.
#[derive(Clone)]
pub struct Deps {
    /// Counters of the kernel.
    pub source: Arc<dyn StatsSource>,
    /// CRI runtime service.
    pub runtime: Arc<dyn ContainerRuntime>,
    /// CRI image service.
    pub images: Arc<dyn ImageService>,
    /// Gate `LocalStorageCapacityIsolationFSQuotaMonitoring`: what file systems count is not walked; `None`: it is off.
    pub quotas: Option<Arc<dyn ProjectQuotas>>,
    /// CSI drivers; `None`: nobody here speaks to them.
    pub csi: Option<Arc<dyn CsiNode>>,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stats_manager::Deps")
    }
}
