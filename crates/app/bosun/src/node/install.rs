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

use super::Seat;
use crate::settings::{Settings, container_gc, limit_rules, node_labels, reservations};

mod cluster;
mod images;
mod logs;
mod stats;
mod workers;

pub(super) use cluster::{api_source, certificate_manager, node_lease, node_manager, object_store, status_syncer};
pub(super) use images::image_manager;
pub(super) use logs::log_manager;
pub(super) use stats::stats_manager;
pub(super) use workers::pod_worker;

pub(super) fn event_recorder(seat: &Seat<'_, EventRecorder>) {
    let sink = seat.outside.api.clone().map(|api| event_recorder::Sink {
        api,
        reporter: event_recorder::Reporter { node_name: seat.settings.node_name.clone() },
        outbox: event_recorder::Outbox::default(),
    });
    seat.install(move |crew| {
        let recorder = event_recorder::EventRecorder::new(crew, event_recorder::Config::default());
        match sink.clone() {
            Some(sink) => recorder.with_sink(sink),
            None => recorder,
        }
    });
}

pub(super) fn runtime_client(seat: &Seat<'_, RuntimeClient>) {
    let deps = runtime_client::Deps::new(seat.outside.runtime.clone(), seat.outside.fs.clone());
    seat.install(move |crew| runtime_client::RuntimeClient::new(&crew, deps.clone()));
}

pub(super) fn status_manager(seat: &Seat<'_, StatusManager>) {
    // What the API server has not heard yet comes back after a restart; standalone nobody waits for it.
    let journal = seat.outside.api.is_some().then(|| seat.outside.journal.clone());
    seat.install(move |crew| {
        let manager = status_manager::StatusManager::new(crew);
        match journal.clone() {
            Some(journal) => manager.with_journal(journal),
            None => manager,
        }
    });
}

fn tree(settings: &Settings) -> PodTree {
    PodTree::new(&settings.config.cgroup_root, settings.cgroup_driver)
}

pub(super) fn cgroup_manager(seat: &Seat<'_, CgroupManager>) {
    let config = Arc::new(cgroup_manager::Config {
        enabled: seat.settings.config.cgroups_per_qos,
        tree: tree(seat.settings),
        rules: limit_rules(&seat.settings.config, seat.machine.facts.cgroup_v2),
        facts: seat.machine.facts.clone(),
        capacity: seat.machine.cgroup_capacity(),
        reserved: reservations(&seat.settings.config),
        enforce_pods: seat.settings.config.enforce_node_allocatable.contains(&node_config::Enforce::Pods),
        oom_score_adj: Some(i64::from(seat.settings.config.oom_score_adj)),
    });
    let deps = Arc::new(cgroup_manager::Deps {
        cgroups: seat.outside.cgroups.clone(),
        serial: cgroup_manager::Serial::default(),
    });
    seat.install(move |crew| cgroup_manager::CgroupManager::new(crew, config.clone(), deps.clone()));
}

pub(super) fn probe_manager(seat: &Seat<'_, ProbeManager>) {
    let mut deps = probe_manager::Deps::new(seat.outside.prober.clone());
    deps.journal = Some(seat.outside.journal.clone());
    let config = probe_manager::Config::new(Timestamp(seat.kernel.clock().unix_nanos()));
    seat.install(move |crew| probe_manager::ProbeManager::new(crew, deps.clone(), config.clone()));
}

pub(super) fn pod_manager(seat: &Seat<'_, PodManager>) {
    let apparmor = seat.outside.fs.read_file(Path::new("/sys/module/apparmor/parameters/enabled"), 16);
    let facts = pod_admission::NodeFacts {
        name: seat.settings.node_name.clone(),
        apparmor: apparmor.is_ok_and(|text| text.starts_with(b"Y")),
        allocatable: seat.machine.allocatable.clone(),
        labels: node_labels(seat.settings),
        unsafe_sysctls: seat.settings.config.allowed_unsafe_sysctls.clone(),
        ..pod_admission::NodeFacts::default()
    };
    let mut sources: BTreeSet<Source> = seat.settings.config.static_pod_path.iter().map(|_| Source::File).collect();
    sources.extend(seat.settings.config.static_pod_url.iter().map(|_| Source::Http));
    sources.extend(seat.outside.api.iter().map(|_| Source::Api));
    let config = Arc::new(pod_manager::Config {
        sources,
        housekeeping: Duration::from_secs(2),
        gc_period: Duration::from_secs(60),
        gc: container_gc(&seat.settings.flags),
        pod_logs_dir: seat.settings.config.pod_logs_dir.clone(),
        container_logs_dir: seat.settings.container_logs_dir.clone(),
    });
    let deps = Arc::new(pod_manager::Deps {
        facts,
        api: seat.outside.api.clone(),
        fs: seat.outside.fs.clone(),
        journal: seat.outside.journal.clone(),
    });
    seat.install(move |crew| pod_manager::PodManager::new(crew, config.clone(), deps.clone()));
}

pub(super) fn http_source(seat: &Seat<'_, HttpSource>) {
    let Some(url) = seat.settings.config.static_pod_url.clone() else { return };
    let config = Arc::new(config_sources::http::Config {
        node_name: seat.settings.node_name.clone(),
        url,
        headers: seat.settings.config.static_pod_url_headers.clone(),
        period: seat.settings.config.http_check_frequency,
    });
    let deps = config_sources::http::Deps { fetch: seat.outside.fetch.clone() };
    seat.install(move |crew| config_sources::http::HttpSource::new(crew, config.clone(), deps.clone()));
}

pub(super) fn folder_source(seat: &Seat<'_, FolderSource>) {
    let Some(path) = seat.settings.config.static_pod_path.clone() else { return };
    let config = Arc::new(config_sources::Config {
        node_name: seat.settings.node_name.clone(),
        path,
        period: seat.settings.config.file_check_frequency,
    });
    let deps = config_sources::Deps { fs: seat.outside.fs.clone(), watch: seat.outside.watch.clone() };
    seat.install(move |crew| config_sources::FolderSource::new(crew, config.clone(), deps.clone()));
}

pub(super) fn volume_manager(seat: &Seat<'_, VolumeManager>) {
    let memory = seat.machine.allocatable.get(model::resources::MEMORY).map_or(0, |q| q.value());
    let config = Arc::new(volume_manager::Config {
        root_dir: seat.settings.root_dir.clone(),
        memory_allocatable_bytes: memory,
        allocatable: seat.machine.allocatable.iter().map(|(k, q)| (k.clone(), q.to_api())).collect(),
    });
    let deps = Arc::new(volume_manager::Deps {
        fs: seat.outside.fs.clone(),
        mounts: seat.outside.mounter.clone(),
        serial: volume_manager::Serial::default(),
        ledger: volume_manager::Ledger::default(),
    });
    seat.install(move |crew| volume_manager::VolumeManager::new(crew, config.clone(), deps.clone()));
}
