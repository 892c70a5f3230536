//! Puts each manager of this repository into its place: what it is configured with, whom it may ask.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cgroup_values::PodTree;
use contract::config_sources::Source;
use contract::{
    CgroupManager, EventRecorder, FolderSource, HttpSource, PodManager, ProbeManager, RuntimeClient, StatusManager,
    VolumeManager,
};
use model::Timestamp;
use ports::host::ProjectQuotas;

use super::Setup;
use crate::settings::{Settings, container_gc, limit_rules, node_labels, reservations, reserved_cgroups, selinux};

mod cluster;
mod eviction;
mod images;
mod logs;
mod oom;
mod plugins;
mod shutdown;
mod stats;
mod workers;

pub(super) use cluster::{api_source, certificate_manager, node_lease, node_manager, object_store, status_syncer};
pub(super) use eviction::eviction_manager;
pub(super) use images::image_manager;
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
    setup.spawn(move |crew| {
        let recorder = event_recorder::EventRecorder::new(crew, event_recorder::Config::default());
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
    // What the API server has not heard yet comes back after a restart; standalone nobody waits for it.
    let journal = setup.ports.api.is_some().then(|| setup.ports.journal.clone());
    setup.spawn(move |crew| {
        let manager = status_manager::StatusManager::new(crew);
        match journal.clone() {
            Some(journal) => manager.with_journal(journal),
            None => manager,
        }
    });
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
    let deps = Arc::new(cgroup_manager::Deps {
        cgroups: setup.ports.cgroups.clone(),
        serial: cgroup_manager::Serial::default(),
    });
    setup.spawn(move |crew| cgroup_manager::CgroupManager::new(crew, config.clone(), deps.clone()));
}

pub(super) fn probe_manager(setup: &Setup<'_, ProbeManager>) {
    let mut deps = probe_manager::Deps::new(setup.ports.prober.clone());
    deps.journal = Some(setup.ports.journal.clone());
    let config = probe_manager::Config::new(Timestamp(setup.kernel.clock().unix_nanos()));
    setup.spawn(move |crew| probe_manager::ProbeManager::new(crew, deps.clone(), config.clone()));
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
    let memory = setup.machine.allocatable.get(model::resources::MEMORY).map_or(0, |q| q.value());
    let config = Arc::new(volume_manager::Config {
        root_dir: setup.settings.root_dir.clone(),
        memory_allocatable_bytes: memory,
        node_name: setup.settings.node_name.clone(),
        controller_attach_detach: setup.settings.config.node.enable_controller_attach_detach,
        selinux: selinux(setup.settings, setup.machine),
        ids: volume_manager::IdRules {
            per_pod: setup.settings.config.pods.user_namespace_ids_per_pod,
            max_pods: setup.settings.config.pods.max_pods,
        },
        allocatable: setup.machine.allocatable.iter().map(|(k, q)| (k.clone(), q.to_api())).collect(),
    });
    let deps = Arc::new(volume_manager::Deps {
        fs: setup.ports.fs.clone(),
        mounts: setup.ports.mounter.clone(),
        quotas: quotas(setup),
        serial: volume_manager::Serial::default(),
        desired: volume_manager::DesiredVolumes::default(),
        persistent: volume_manager::Volumes::default(),
        user_ids: volume_manager::UserIds::default(),
        api: setup.ports.api.clone(),
        csi: Some(setup.ports.csi.clone()),
    });
    setup.spawn(move |crew| volume_manager::VolumeManager::new(crew, config.clone(), deps.clone()));
}

/// What counts emptyDirs, if anything is to.
fn quotas<R: contract::Role>(setup: &Setup<'_, R>) -> Option<Arc<dyn ProjectQuotas>> {
    let gate = "LocalStorageCapacityIsolationFSQuotaMonitoring";
    setup.settings.config.feature_gates.enabled(gate).then(|| setup.ports.quotas.clone())
}
