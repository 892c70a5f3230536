//! Puts each manager of this repository into its place: what it is configured with, whom it may ask.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actor::Kernel;
use cgroup_values::PodTree;
use contract::config_sources::Source;
use contract::{
    CgroupManager, Crew, EventRecorder, FolderSource, HttpSource, PodManager, ProbeManager, RuntimeClient,
    StatusManager, VolumeManager,
};
use model::Timestamp;
use ports::host::ProjectQuotas;

use super::{Ports, Setup};
use crate::settings::{
    Machine, Settings, container_gc, limit_rules, node_labels, reservations, reserved_cgroups, selinux,
};

mod cluster;
mod eviction;
mod images;
mod kept;
mod logs;
mod oom;
mod plugins;
mod shutdown;
mod stats;
mod workers;

pub(super) use cluster::{api_source, certificate_manager, node_lease, node_manager, object_store, status_syncer};
pub(super) use eviction::eviction_manager;
pub(super) use images::{image_manager, makes_image_manager};
pub(super) use kept::Kept;
pub(super) use logs::log_manager;
pub(super) use oom::oom_watcher;
pub(super) use plugins::plugin_manager;
pub(super) use shutdown::shutdown_manager;
pub(super) use stats::stats_manager;
pub(super) use workers::pod_worker;

pub(super) fn event_recorder(setup: &Setup<'_, EventRecorder>) {
    let sink = setup.ports.api.clone().map(|api| event_recorder::Sink {
        api,
        reporter: event_recorder::Reporter { node_name: setup.settings.node_name.clone() },
        outbox: event_recorder::Outbox::default(),
    });
    let memory = event_recorder::Memory::default();
    setup.spawn(move |crew| {
        let config = event_recorder::Config::default();
        let recorder = event_recorder::EventRecorder::new(crew, config, memory.clone());
        match sink.clone() {
            Some(sink) => recorder.with_sink(sink),
            None => recorder,
        }
    });
}

pub(super) fn runtime_client(setup: &Setup<'_, RuntimeClient>) {
    let limits = runtime_client::CallLimits::for_cores(setup.machine.cores());
    let deps = runtime_client::Deps::new(setup.ports.runtime.clone(), setup.ports.fs.clone(), limits);
    setup.spawn(move |crew| runtime_client::RuntimeClient::new(&crew, deps.clone()));
}

pub(super) fn status_manager(setup: &Setup<'_, StatusManager>) {
    setup.spawn(makes_status_manager(setup.ports));
}

/// What builds it, here or in a process of its own.
pub(super) fn makes_status_manager(
    ports: &Ports,
) -> impl FnMut(Crew<StatusManager>) -> status_manager::StatusManager + Send + use<> {
    // What the API server has not heard yet comes back after a restart; standalone nobody waits for it.
    let journal = ports.api.is_some().then(|| ports.journal.clone());
    move |crew| {
        let manager = status_manager::StatusManager::new(crew);
        match journal.clone() {
            Some(journal) => manager.with_journal(journal),
            None => manager,
        }
    }
}

fn tree(settings: &Settings) -> PodTree {
    PodTree::new(&settings.config.cgroups.root, settings.cgroup_driver)
}

pub(super) fn cgroup_manager(setup: &Setup<'_, CgroupManager>) {
    if setup.settings.config.limits.memory_qos.is_some() {
        metrics::memory_qos::show();
    }
    let config = Arc::new(cgroup_manager::Config {
        enabled: setup.settings.config.cgroups.per_qos,
        tree: tree(setup.settings),
        rules: limit_rules(&setup.settings.config.limits, setup.machine.facts.cgroup_v2),
        facts: setup.machine.facts.clone(),
        capacity: setup.machine.cgroup_capacity(),
        reserved: reservations(&setup.settings.config.allocatable),
        enforce_pods: setup.settings.config.allocatable.enforce.contains(&node_config::Enforce::Pods),
        reserved_cgroups: reserved_cgroups(&setup.settings.config, setup.settings.cgroup_driver),
        own_cgroup: Some(setup.settings.config.cgroups.own.clone()).filter(|path| !path.is_empty()),
        system_cgroup: Some(setup.settings.config.cgroups.system.clone()).filter(|path| !path.is_empty()),
        memory_may_swap: setup.machine.memory_may_swap,
        oom_score_adj: Some(i64::from(setup.settings.config.cgroups.oom_score_adj)),
    });
    let (cgroups, serial) = (setup.ports.cgroups.clone(), setup.kept.cgroups.clone());
    let deps = Arc::new(cgroup_manager::Deps { cgroups, serial });
    setup.spawn(move |crew| cgroup_manager::CgroupManager::new(crew, config.clone(), deps.clone()));
}

pub(super) fn probe_manager(setup: &Setup<'_, ProbeManager>) {
    setup.spawn(makes_probe_manager(setup.kernel, setup.ports));
}

/// What builds it, here or in a process of its own.
pub(super) fn makes_probe_manager(
    kernel: &Kernel,
    ports: &Ports,
) -> impl FnMut(Crew<ProbeManager>) -> probe_manager::ProbeManager + Send + use<> {
    let mut deps = probe_manager::Deps::new(ports.prober.clone());
    deps.journal = Some(ports.journal.clone());
    let config = probe_manager::Config::new(Timestamp(kernel.clock().unix_nanos()));
    move |crew| probe_manager::ProbeManager::new(crew, deps.clone(), config.clone())
}

pub(super) fn pod_manager(setup: &Setup<'_, PodManager>) {
    let apparmor = setup.ports.fs.read_file(Path::new("/sys/module/apparmor/parameters/enabled"), 16);
    let facts = pod_admission::NodeFacts {
        name: setup.settings.node_name.clone(),
        apparmor: apparmor.is_ok_and(|text| text.starts_with(b"Y")),
        allocatable: setup.machine.allocatable.clone(),
        labels: node_labels(setup.settings),
        limited_swap: setup.settings.config.limits.swap_behavior == model::node::SwapBehavior::LimitedSwap
            && setup.machine.facts.cgroup_v2,
        unsafe_sysctls: setup.settings.config.pods.allowed_unsafe_sysctls.clone(),
        ..pod_admission::NodeFacts::default()
    };
    let mut sources: BTreeSet<Source> =
        setup.settings.config.sources.static_pod_path.iter().map(|_| Source::File).collect();
    sources.extend(setup.settings.config.sources.static_pod_url.iter().map(|_| Source::Http));
    sources.extend(setup.ports.api.iter().map(|_| Source::Api));
    let config = Arc::new(pod_manager::Config {
        sources,
        housekeeping: Duration::from_secs(2),
        gc_period: Duration::from_secs(60),
        gc: container_gc(&setup.settings.flags),
        root_dir: setup.settings.root_dir.clone(),
        resizable: resizable(setup.settings),
        pod_logs_dir: setup.settings.config.pods.logs_dir.clone(),
        container_logs_dir: setup.settings.container_logs_dir.clone(),
    });
    let deps = Arc::new(pod_manager::Deps {
        facts,
        api: setup.ports.api.clone(),
        fs: setup.ports.fs.clone(),
        journal: setup.ports.journal.clone(),
    });
    setup.spawn(move |crew| pod_manager::PodManager::new(crew, config.clone(), deps.clone()));
}

/// What can be resized in place.
fn resizable(settings: &Settings) -> model::allocation::Resizable {
    let gates = &settings.config.feature_gates;
    model::allocation::Resizable {
        pod_level: gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
        init_containers: gates.enabled("InPlacePodVerticalScalingInitContainers"),
    }
}

pub(super) fn http_source(setup: &Setup<'_, HttpSource>) {
    let Some(url) = setup.settings.config.sources.static_pod_url.clone() else { return };
    let config = Arc::new(config_sources::http::Config {
        node_name: setup.settings.node_name.clone(),
        url,
        headers: setup.settings.config.sources.static_pod_url_headers.clone(),
        period: setup.settings.config.sources.http_check_frequency,
    });
    let deps = config_sources::http::Deps { fetch: setup.ports.fetch.clone() };
    setup.spawn(move |crew| config_sources::http::HttpSource::new(crew, config.clone(), deps.clone()));
}

pub(super) fn folder_source(setup: &Setup<'_, FolderSource>) {
    let Some(path) = setup.settings.config.sources.static_pod_path.clone() else { return };
    let config = Arc::new(config_sources::folder::Config {
        node_name: setup.settings.node_name.clone(),
        path,
        period: setup.settings.config.sources.file_check_frequency,
    });
    let deps = config_sources::folder::Deps { fs: setup.ports.fs.clone(), watch: setup.ports.watch.clone() };
    setup.spawn(move |crew| config_sources::folder::FolderSource::new(crew, config.clone(), deps.clone()));
}

pub(super) fn volume_manager(setup: &Setup<'_, VolumeManager>) {
    setup.spawn(makes_volume_manager((setup.settings, setup.machine), setup.kept, setup.ports));
}

/// What builds it, here or in a process of its own.
pub(super) fn makes_volume_manager(
    (settings, machine): (&Settings, &Machine),
    kept: &Kept,
    ports: &Ports,
) -> impl FnMut(Crew<VolumeManager>) -> volume_manager::VolumeManager + Send + use<> {
    let memory = machine.allocatable.get(model::resources::MEMORY).map_or(0, |q| q.value());
    let config = Arc::new(volume_manager::Config {
        root_dir: settings.root_dir.clone(),
        memory_allocatable_bytes: memory,
        node_name: settings.node_name.clone(),
        controller_attach_detach: settings.config.node.enable_controller_attach_detach,
        selinux: selinux(settings, machine),
        ids: volume_manager::IdRules {
            per_pod: settings.config.pods.user_namespace_ids_per_pod,
            max_pods: settings.config.pods.max_pods,
        },
        allocatable: machine.allocatable.iter().map(|(k, q)| (k.clone(), q.to_api())).collect(),
    });
    let deps = Arc::new(volume_manager::Deps {
        fs: ports.fs.clone(),
        mounts: ports.mounter.clone(),
        quotas: quotas(settings, ports),
        serial: kept.volumes.clone(),
        // What pods wanted before is not wanted now: the next one is told, and reads what there is.
        desired: volume_manager::DesiredVolumes::default(),
        persistent: volume_manager::Volumes::default(),
        user_ids: volume_manager::UserIds::default(),
        api: ports.api.clone(),
        csi: Some(ports.csi.clone()),
    });
    move |crew| volume_manager::VolumeManager::new(crew, config.clone(), deps.clone())
}

/// What counts emptyDirs, if anything is to.
fn quotas(settings: &Settings, ports: &Ports) -> Option<Arc<dyn ProjectQuotas>> {
    let gate = "LocalStorageCapacityIsolationFSQuotaMonitoring";
    settings.config.feature_gates.enabled(gate).then(|| ports.quotas.clone())
}
