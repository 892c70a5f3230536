//! Makes pod workers: one actor per UID.

use std::sync::Arc;

use contract::PodWorker as Role;
use pod_worker::{Config, Deps, PodWorker};

use super::Setup;
use crate::settings::{limit_rules, node_settings};

pub(in crate::node) fn pod_worker(setup: &Setup<'_, Role>) {
    let deps = Arc::new(deps(setup));
    setup.spawn_per_pod(move |crew, uid| PodWorker::new(crew, uid, deps.clone()));
}

fn deps(setup: &Setup<'_, Role>) -> Deps {
    let (settings, machine, ports) = (setup.settings, setup.machine, setup.ports);
    let config = Config {
        node: node_settings(settings, machine),
        facts: machine.facts.clone(),
        rules: limit_rules(&settings.config.limits, machine.facts.cgroup_v2),
        cluster_dns: settings.config.dns.cluster_dns.iter().map(ToString::to_string).collect(),
        resolv_conf: settings.config.dns.resolv_conf.clone(),
        container_logs_dir: settings.container_logs_dir.clone(),
        sync_frequency: settings.config.pods.sync_frequency,
        crash_backoff_max: settings.config.pods.max_container_restart_period,
        restart_all_containers: settings.config.feature_gates.enabled("RestartAllContainersOnContainerExits"),
        resizable: super::resizable(settings),
        dead_per_container: 1,
    };
    Deps { config: Arc::new(config), fs: ports.fs.clone(), http: ports.http.clone(), journal: ports.journal.clone() }
}
