//! Readings of pods, and of the cgroups of the system. Whatever is gone meanwhile is left out.

use std::path::PathBuf;
use std::sync::Arc;

use contract::cgroup::PodCgroupRow;
use contract::pod_manager::DesiredPod;
use contract::runtime::Observed;
use model::PodUid;
use model::reading::{CgroupReading, Depth, InterfaceReading};
use model::runtime::{PodObservation, SandboxObservation};
use model::stats::PodReference;
use node_stats::{Chosen, ContainerReadings, MeasuredVolume, PodReadings, SystemReading, choose};
use ports::stats::StatsSource;

use super::paths::{pod_dir, single_name};
use super::sources::Sources;

/// Cgroups of the system that are known, with the names that readers expect.
pub(super) fn systems(sources: &Sources, depth: Depth) -> Vec<SystemReading> {
    let (config, source) = (&sources.config, &*sources.deps.source);
    let named = |path: &String| (!path.is_empty()).then(|| path.clone());
    let own = named(&config.kubelet_cgroup).or_else(|| source.own_cgroup());
    let known = [
        ("kubelet", own),
        ("runtime", named(&config.runtime_cgroup)),
        ("misc", named(&config.system_cgroup)),
        ("pods", config.tree.as_ref().map(cgroup_values::PodTree::kubepods)),
    ];
    let read = |(name, path): (&'static str, Option<String>)| {
        let path = path?;
        let Some(reading) = source.cgroup(&path, depth) else {
            tracing::debug!(name, path, "a cgroup of the system is not there");
            return None;
        };
        Some(SystemReading { name, path, reading })
    };
    known.into_iter().filter_map(read).collect()
}

/// Pods with a container that runs.
pub(super) fn all(sources: &Sources, depth: Depth) -> Vec<PodReadings> {
    let rows = sources.crew.board::<Observed>().snapshot();
    rows.values().filter_map(|row| Some(pod(sources, &row.pod, &choose(&row.pod)?, depth))).collect()
}

fn pod(sources: &Sources, of: &PodObservation, chosen: &Chosen<'_>, depth: Depth) -> PodReadings {
    let source = &*sources.deps.source;
    let path = sources.crew.board::<PodCgroupRow>().get(&of.uid).map(|row| row.path.clone());
    let with_disks = depth >= Depth::Summary;
    let log_dir = with_disks.then(|| log_dir(sources, of)).flatten();
    let containers: Vec<ContainerReadings> = chosen
        .containers
        .iter()
        .map(|c| ContainerReadings {
            name: c.name.clone(),
            id: c.id.to_string(),
            created: c.created_at,
            cgroup: path.as_deref().and_then(|pod| container(source, pod, c.id.as_str(), depth)),
            logs: log_dir.as_ref().filter(|_| single_name(&c.name)).and_then(|dir| source.files_in(&dir.join(&c.name))),
        })
        .collect();
    let network = (with_disks && !in_host_network(sources, of, chosen.sandbox))
        .then(|| network(source, path.as_deref(), chosen.sandbox, &containers))
        .flatten();
    let hosts_file = with_disks && single_name(of.uid.as_str());
    PodReadings {
        reference: PodReference { name: of.name.clone(), namespace: of.namespace.clone(), uid: of.uid.to_string() },
        started: chosen.sandbox.created_at,
        cgroup: path.and_then(|path| source.cgroup(&path, depth).map(|r| (path, r))),
        network,
        containers,
        log_files: log_dir.and_then(|dir| source.files_in(&dir)),
        hosts_file: hosts_file
            .then(|| source.file(&pod_dir(&sources.config.root_dir, of.uid.as_str()).join("etc-hosts")))
            .flatten(),
        volumes: volumes(sources, &of.uid),
    }
}

/// Volumes of a pod as they were measured, or told of, last.
fn volumes(sources: &Sources, uid: &PodUid) -> Arc<[MeasuredVolume]> {
    let measured = sources.volumes.get(uid).cloned().unwrap_or_default();
    match sources.told.get(uid) {
        None => measured,
        Some(told) => measured.iter().chain(told).cloned().collect(),
    }
}

pub(super) fn container(
    source: &dyn StatsSource,
    pod: &str,
    id: &str,
    depth: Depth,
) -> Option<(String, CgroupReading)> {
    let path = source.container_cgroup(pod, id)?;
    let reading = source.cgroup(&path, depth)?;
    Some((path, reading))
}

/// What the runtime did not say of a sandbox, the pod's specification does.
pub(super) fn in_host_network(sources: &Sources, of: &PodObservation, sandbox: &SandboxObservation) -> bool {
    sandbox.host_network.unwrap_or_else(|| {
        let row = sources.crew.board::<DesiredPod>().get(&of.uid);
        row.is_some_and(|row| row.pod.spec.as_ref().is_some_and(|s| s.host_network == Some(true)))
    })
}

/// Interfaces as any process of the pod sees them: a container's, which is known already, else the sandbox's.
pub(super) fn network(
    source: &dyn StatsSource,
    pod: Option<&str>,
    sandbox: &SandboxObservation,
    containers: &[ContainerReadings],
) -> Option<Vec<InterfaceReading>> {
    let of_container = containers.iter().find_map(|c| c.cgroup.as_ref()?.1.tasks.one);
    let of_sandbox = || source.any_process(&source.container_cgroup(pod?, sandbox.id.as_str())?);
    source.network(Some(of_container.or_else(of_sandbox)?))
}

fn log_dir(sources: &Sources, of: &PodObservation) -> Option<PathBuf> {
    let name = format!("{}_{}_{}", of.namespace, of.name, of.uid);
    single_name(&name).then(|| sources.config.pod_logs_dir.join(name))
}
