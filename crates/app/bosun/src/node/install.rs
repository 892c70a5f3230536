//! Puts each manager of this repository into its place: what it is configured with, whom it may ask.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cgroup_values::PodTree;
use contract::config_sources::Source;
use model::Timestamp;

use super::Seat;
use crate::settings::{Settings, container_gc, limit_rules, node_labels, reservations};

mod cluster;
mod images;
mod logs;
mod stats;

pub(super) use cluster::{certificate_manager, node_manager, object_store};
pub(super) use images::image_manager;
pub(super) use logs::log_manager;
pub(super) use stats::stats_manager;

pub(super) fn event_recorder(seat: &Seat<'_>) {
    let view = seat.handles.events.view.clone();
    let sink = seat.outside.api.clone().map(|api| event_recorder::Sink {
        api,
        reporter: event_recorder::Reporter { node_name: seat.settings.node_name.clone() },
        outbox: event_recorder::Outbox::default(),
        pods: seat.handles.pods.view.clone(),
    });
    let a = seat.spawn("event-recorder", move |_| {
        let recorder = event_recorder::EventRecorder::new(event_recorder::Config::default(), view.clone());
        match sink.clone() {
            Some(sink) => recorder.with_sink(sink),
            None => recorder,
        }
    });
    seat.handles.events.connect(&a);
}

pub(super) fn runtime_client(seat: &Seat<'_>) {
    let outside = seat.outside;
    let view = seat.handles.runtime.view.clone();
    let deps = runtime_client::Deps::new(outside.runtime.clone(), outside.fs.clone(), view);
    let a = seat.spawn("runtime-client", move |_| runtime_client::RuntimeClient::new(deps.clone()));
    seat.handles.runtime.connect(&a);
}

pub(super) fn status_manager(seat: &Seat<'_>) {
    let view = seat.handles.status.view.clone();
    // What the API server has not heard yet comes back after a restart; standalone nobody waits for it.
    let journal = seat.outside.api.is_some().then(|| seat.outside.journal.clone());
    let a = seat.spawn("status-manager", move |_| {
        let manager = status_manager::StatusManager::new(view.clone());
        match journal.clone() {
            Some(journal) => manager.with_journal(journal),
            None => manager,
        }
    });
    seat.handles.status.connect(&a);
    cluster::status_syncer(seat);
}

fn tree(settings: &Settings) -> PodTree {
    PodTree::new(&settings.config.cgroup_root, settings.cgroup_driver)
}

pub(super) fn cgroup_manager(seat: &Seat<'_>) {
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
        view: seat.handles.cgroups.view.clone(),
        pods: seat.handles.pods.view.clone(),
        events: seat.handles.events.clone(),
        serial: cgroup_manager::Serial::default(),
    });
    let a = seat.spawn("cgroup-manager", move |_| cgroup_manager::CgroupManager::new(config.clone(), deps.clone()));
    seat.handles.cgroups.connect(&a);
}

pub(super) fn probe_manager(seat: &Seat<'_>) {
    let h = seat.handles;
    let mut deps = probe_manager::Deps::new(
        h.runtime.clone(),
        h.events.clone(),
        h.status.view.clone(),
        h.probes.view.clone(),
        seat.outside.prober.clone(),
    );
    deps.journal = Some(seat.outside.journal.clone());
    let config = probe_manager::Config::new(Timestamp(seat.kernel.clock().unix_nanos()));
    let a = seat.spawn("probe-manager", move |_| probe_manager::ProbeManager::new(deps.clone(), config.clone()));
    seat.handles.probes.connect(&a);
}

pub(super) fn pod_manager(seat: &Seat<'_>) {
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
    let h = seat.handles;
    let deps = Arc::new(pod_manager::Deps {
        view: h.pods.view.clone(),
        workers: h.workers.clone(),
        new_worker: seat.new_worker.clone(),
        facts,
        node: h.node.view.clone(),
        api: seat.outside.api.clone(),
        objects: h.objects.clone(),
        runtime: h.runtime.clone(),
        status: h.status.clone(),
        probes: h.probes.clone(),
        volumes: h.volumes.clone(),
        cgroups: h.cgroups.clone(),
        events: h.events.clone(),
        fs: seat.outside.fs.clone(),
        journal: seat.outside.journal.clone(),
    });
    let a = seat.spawn("pod-manager", move |_| pod_manager::PodManager::new(config.clone(), deps.clone()));
    seat.handles.pods.connect(&a);
}

fn http_source(seat: &Seat<'_>) {
    let Some(url) = seat.settings.config.static_pod_url.clone() else { return };
    let config = Arc::new(config_sources::http::Config {
        node_name: seat.settings.node_name.clone(),
        url,
        headers: seat.settings.config.static_pod_url_headers.clone(),
        period: seat.settings.config.http_check_frequency,
    });
    let deps = config_sources::http::Deps {
        fetch: seat.outside.fetch.clone(),
        view: seat.handles.sources.url.clone(),
        pods: seat.handles.pods.clone(),
    };
    seat.spawn("http-source", move |_| config_sources::http::HttpSource::new(config.clone(), deps.clone()));
}

pub(super) fn config_sources(seat: &Seat<'_>) {
    cluster::api_source(seat);
    http_source(seat);
    let Some(path) = seat.settings.config.static_pod_path.clone() else { return };
    let config = Arc::new(config_sources::Config {
        node_name: seat.settings.node_name.clone(),
        path,
        period: seat.settings.config.file_check_frequency,
    });
    let deps = config_sources::Deps {
        fs: seat.outside.fs.clone(),
        watch: seat.outside.watch.clone(),
        view: seat.handles.sources.view.clone(),
        pods: seat.handles.pods.clone(),
        events: seat.handles.events.clone(),
    };
    // It is asked by nobody: nothing to connect.
    seat.spawn("config-sources", move |_| config_sources::ConfigSources::new(config.clone(), deps.clone()));
}

pub(super) fn volume_manager(seat: &Seat<'_>) {
    let memory = seat.machine.allocatable.get(model::resources::MEMORY).map_or(0, |q| q.value());
    let config = Arc::new(volume_manager::Config {
        root_dir: seat.settings.root_dir.clone(),
        memory_allocatable_bytes: memory,
        allocatable: seat.machine.allocatable.iter().map(|(k, q)| (k.clone(), q.to_api())).collect(),
    });
    let deps = Arc::new(volume_manager::Deps {
        fs: seat.outside.fs.clone(),
        mounts: seat.outside.mounter.clone(),
        view: seat.handles.volumes.view.clone(),
        events: seat.handles.events.clone(),
        objects: seat.handles.objects.clone(),
        serial: volume_manager::Serial::default(),
        ledger: volume_manager::Ledger::default(),
    });
    let a = seat.spawn("volume-manager", move |_| volume_manager::VolumeManager::new(config.clone(), deps.clone()));
    seat.handles.volumes.connect(&a);
}
