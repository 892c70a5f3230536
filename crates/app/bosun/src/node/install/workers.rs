//! Makes pod workers: one actor per UID.

use std::sync::Arc;

use contract::PodWorker as Role;
use pod_worker::{Config, Deps, PodWorker};

use super::Seat;
use crate::settings::{limit_rules, node_settings};

pub(in crate::node) fn pod_worker(seat: &Seat<'_, Role>) {
    let deps = Arc::new(deps(seat));
    seat.install_workers(move |crew, uid| PodWorker::new(crew, uid, deps.clone()));
}

fn deps(seat: &Seat<'_, Role>) -> Deps {
    let (settings, machine, outside) = (seat.settings, seat.machine, seat.outside);
    let config = Config {
        node: node_settings(settings, machine),
        facts: machine.facts.clone(),
        rules: limit_rules(&settings.config, machine.facts.cgroup_v2),
        cluster_dns: settings.config.cluster_dns.iter().map(ToString::to_string).collect(),
        resolv_conf: settings.config.resolv_conf.clone(),
        container_logs_dir: settings.container_logs_dir.clone(),
        sync_frequency: settings.config.sync_frequency,
        crash_backoff_max: settings.config.max_container_restart_period,
        dead_per_container: 1,
    };
    Deps {
        config: Arc::new(config),
        fs: outside.fs.clone(),
        http: outside.http.clone(),
        journal: outside.journal.clone(),
    }
}
