//! What EvictionManager is given.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use eviction::Threshold;
use ports::host::{HostFs, NodeHost};
use ports::memory_alarm::MemoryAlarm;
use ports::runtime::ImageService;
use ports::stats::StatsSource;

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Hard and soft thresholds, as they were configured.
    pub thresholds: Vec<Threshold>,
    /// `evictionPressureTransitionPeriod`.
    pub pressure_transition: Duration,
    /// `evictionMaxPodGracePeriod`.
    pub max_pod_grace: Duration,
    /// `localStorageCapacityIsolation`: pods go that use more disk than they allow themselves.
    pub local_storage: bool,
    /// `volumeStatsAggPeriod`: volumes of pods are measured.
    pub measures_volumes: bool,
    /// `--root-dir`: its file system is `nodefs`.
    pub root_dir: PathBuf,
    /// Cgroup of all pods, where they have one.
    pub pods_cgroup: Option<String>,
    /// `--eviction-early-looks`: looks sooner than every ten seconds when memory falls fast or tasks wait for it.
    pub early_looks: bool,
    /// `kernelMemcgNotification`: the kernel of cgroup v1 tells when memory crosses a threshold.
    pub memcg_notification: bool,
}

/// What EvictionManager works with.
#[derive(Clone)]
pub struct Deps {
    /// The machine.
    pub host: Arc<dyn NodeHost>,
    /// Which device holds what.
    pub fs: Arc<dyn HostFs>,
    /// Counters of the kernel.
    pub stats: Arc<dyn StatsSource>,
    /// Where the runtime keeps images and layers.
    pub images: Arc<dyn ImageService>,
    /// What the kernel tells of memory.
    pub alarm: Arc<dyn MemoryAlarm>,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("eviction_manager::Deps")
    }
}
