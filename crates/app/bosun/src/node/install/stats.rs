//! What measures: StatsManager.

use std::sync::Arc;

use contract::StatsManager;

use super::{Seat, tree};

pub(in crate::node) fn stats_manager(seat: &Seat<'_, StatsManager>) {
    let config = &seat.settings.config;
    let config = Arc::new(stats_manager::Config {
        node_name: seat.settings.node_name.clone(),
        root_dir: seat.settings.root_dir.clone(),
        pod_logs_dir: config.pod_logs_dir.clone(),
        tree: config.cgroups_per_qos.then(|| tree(seat.settings)),
        kubelet_cgroup: String::new(),
        runtime_cgroup: seat.settings.flags.runtime_cgroups.clone().unwrap_or_default(),
        system_cgroup: String::new(),
        volume_period: config.volume_stats_agg_period,
    });
    let deps = Arc::new(stats_manager::Deps {
        source: seat.outside.stats.clone(),
        runtime: seat.outside.runtime.clone(),
        images: seat.outside.images.clone(),
    });
    seat.install(move |crew| stats_manager::StatsManager::new(crew, config.clone(), deps.clone()));
}
