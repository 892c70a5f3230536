//! What measures: StatsManager.

use std::sync::Arc;

use contract::StatsManager;

use super::{Setup, tree};

pub(in crate::node) fn stats_manager(setup: &Setup<'_, StatsManager>) {
    let config = &setup.settings.config;
    let config = Arc::new(stats_manager::Config {
        node_name: setup.settings.node_name.clone(),
        root_dir: setup.settings.root_dir.clone(),
        pod_logs_dir: config.pods.logs_dir.clone(),
        tree: config.cgroups.per_qos.then(|| tree(setup.settings)),
        kubelet_cgroup: config.cgroups.own.clone(),
        runtime_cgroup: setup.settings.flags.runtime_cgroups.clone().unwrap_or_default(),
        system_cgroup: config.cgroups.system.clone(),
        volume_period: config.pods.volume_stats_agg_period,
        volume_health: config.feature_gates.enabled("CSIVolumeHealth"),
    });
    let deps = Arc::new(stats_manager::Deps {
        source: setup.ports.stats.clone(),
        runtime: setup.ports.runtime.clone(),
        images: setup.ports.images.clone(),
        quotas: super::quotas(setup.settings, setup.ports),
        csi: Some(setup.ports.csi.clone()),
    });
    setup.spawn(move |crew| stats_manager::StatsManager::new(crew, config.clone(), deps.clone()));
}
