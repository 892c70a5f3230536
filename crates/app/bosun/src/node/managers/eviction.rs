//! Who evicts pods: EvictionManager.

use std::sync::Arc;
use std::time::Duration;

use contract::EvictionManager;
use eviction::{Amount, Signal};
use node_config::{Enforce, NodeConfig, Threshold};

use super::{Setup, tree};

pub(in crate::node) fn eviction_manager(setup: &Setup<'_, EvictionManager>) {
    let config = &setup.settings.config;
    let config = Arc::new(eviction_manager::Config {
        thresholds: thresholds(config),
        pressure_transition: config.eviction.pressure_transition_period,
        max_pod_grace: config.eviction.max_pod_grace_period,
        local_storage: config.node.local_storage_capacity_isolation,
        measures_volumes: config.pods.volume_stats_agg_period.is_some(),
        root_dir: setup.settings.root_dir.clone(),
        pods_cgroup: config.cgroups.per_qos.then(|| tree(setup.settings).kubepods()),
        early_looks: setup.settings.flags.eviction_early_looks,
        memcg_notification: config.eviction.memcg_notification,
    });
    let deps = Arc::new(eviction_manager::Deps {
        host: setup.ports.host.clone(),
        fs: setup.ports.fs.clone(),
        stats: setup.ports.stats.clone(),
        images: setup.ports.images.clone(),
        alarm: setup.ports.memory_alarm.clone(),
    });
    setup.spawn(move |crew| eviction_manager::EvictionManager::new(crew, config.clone(), deps.clone()));
}

fn thresholds(config: &NodeConfig) -> Vec<eviction::Threshold> {
    let amount = |t: &Threshold| match t {
        Threshold::Amount(q) => Amount::Absolute(*q),
        #[allow(clippy::cast_possible_truncation, reason = "a kubelet keeps shares in single precision")]
        Threshold::Percent(share) => Amount::percent(*share as f32),
    };
    let given = &config.eviction;
    let hard = given.hard.iter().map(|(signal, threshold)| (signal, threshold, Duration::ZERO));
    let soft = given.soft.iter().map(|(signal, soft)| (signal, &soft.threshold, soft.grace));
    let all = hard.chain(soft).filter_map(|(signal, threshold, grace)| {
        Some(eviction::Threshold {
            signal: Signal::parse(signal)?,
            below: amount(threshold),
            min_reclaim: given.minimum_reclaim.get(signal).map(amount),
            grace,
        })
    });
    let all = all.collect();
    if config.allocatable.enforce.contains(&Enforce::Pods) { eviction::with_allocatable(all) } else { all }
}
