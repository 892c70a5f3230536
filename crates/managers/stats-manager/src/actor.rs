//! The actor: who asks gets a result that is fresh enough, and shares its gathering with whoever asks meanwhile.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Ctx, Deferred, Handler, supervised};
use cgroup_values::PodTree;
use contract::cgroup::PodCgroupRow;
use contract::pod_manager::DesiredPod;
use contract::runtime::RuntimeView;
use contract::stats::{Cadvisor, Resource, StatsError, Summarise};
use contract::view::Board;
use contract::volume::PodVolumes;
use model::PodUid;
use model::stats::Summary;
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
    /// What the runtime has.
    pub view: RuntimeView,
    /// Board of desired pods.
    pub pods: Board<PodUid, DesiredPod>,
    /// Board of pod cgroups.
    pub cgroups: Board<PodUid, PodCgroupRow>,
    /// Board of mounted volumes.
    pub volumes: Board<PodUid, PodVolumes>,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stats_manager::Deps")
    }
}

/// The actor.
#[derive(Debug)]
pub struct StatsManager {
    config: Arc<Config>,
    deps: Arc<Deps>,
}

impl Actor for StatsManager {
    type Context = Ctx<Self>;
}
supervised!(StatsManager);

impl StatsManager {
    /// A fresh instance.
    #[must_use]
    pub fn new(config: Arc<Config>, deps: Arc<Deps>) -> Self {
        Self { config, deps }
    }
}

fn not_yet() -> StatsError {
    StatsError { message: "statistics are not gathered yet".to_owned() }
}

impl Handler<Summarise> for StatsManager {
    type Result = Deferred<Self, Result<Arc<Summary>, StatsError>>;

    fn handle(&mut self, _: Summarise, _: &mut Ctx<Self>) -> Self::Result {
        Deferred::ready(Err(not_yet()))
    }
}

impl Handler<Resource> for StatsManager {
    type Result = Deferred<Self, Arc<str>>;

    fn handle(&mut self, _: Resource, _: &mut Ctx<Self>) -> Self::Result {
        let _ = (&self.config, &self.deps);
        Deferred::ready("resource_scrape_error 1\n".into())
    }
}

impl Handler<Cadvisor> for StatsManager {
    type Result = Deferred<Self, Result<Arc<str>, StatsError>>;

    fn handle(&mut self, _: Cadvisor, _: &mut Ctx<Self>) -> Self::Result {
        Deferred::ready(Err(not_yet()))
    }
}
