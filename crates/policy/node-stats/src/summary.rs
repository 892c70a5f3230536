//! The summary (interfaces 6).

use std::collections::BTreeMap;

use cri_api::v1;
use model::Timestamp;
use model::reading::{CgroupReading, DiskUse, FsReading};
use model::stats::{
    ContainerStats, FsStats, NodeStats, PodStats, ProcessStats, RlimitStats, RuntimeStats, Summary, VolumeStats,
};

use crate::convert;
use crate::input::{ContainerReadings, MeasuredVolume, NodeDisks, NodeReadings, PodReadings, RuntimeFs, SystemReading};
use crate::samples::Samples;

/// What only the runtime knows.
#[derive(Clone, Debug, Default)]
pub struct FromRuntime {
    /// Its statistics of containers, by id.
    pub containers: BTreeMap<String, v1::ContainerStats>,
    /// Room on the file systems that it names as holding writable layers, by mount point.
    pub mounts: BTreeMap<String, FsReading>,
}

/// The whole answer. A container of which nothing is known is left out, and so is a pod without containers.
#[must_use]
pub fn summary(node: &NodeReadings, pods: &[PodReadings], runtime: &FromRuntime, samples: &mut Samples) -> Summary {
    let mut pods: Vec<PodStats> = pods.iter().filter_map(|p| pod_stats(node, p, runtime, samples)).collect();
    pods.sort_by(|a, b| order(a).cmp(&order(b)));
    let node = node_stats(node, samples);
    Summary { node, pods }
}

fn order(p: &PodStats) -> (&str, &str, &str) {
    (&p.pod_ref.namespace, &p.pod_ref.name, &p.pod_ref.uid)
}

fn node_stats(node: &NodeReadings, samples: &mut Samples) -> NodeStats {
    let disks = node.disks.as_ref();
    NodeStats {
        node_name: node.name.clone(),
        system_containers: node.systems.iter().map(|s| system_stats(s, samples)).collect(),
        start_time: node.machine.booted,
        cpu: convert::cpu(&node.root, "/", samples),
        memory: node_memory(node),
        io: convert::io(&node.root),
        network: node.network.as_ref().map(|n| convert::network(node.at, n)),
        fs: disks.map(|d| convert::whole_fs(node.at, &d.root)),
        runtime: disks.map(runtime_stats),
        rlimit: disks.map(|d| rlimit(node.at, d.processes)),
        swap: convert::swap(&node.root, Some(node.machine.swap_bytes)),
    }
}

fn node_memory(node: &NodeReadings) -> Option<model::stats::MemoryStats> {
    // The machine's memory is the limit, whatever the root's file says.
    let mut root = node.root.clone();
    root.memory.limit = Some(node.machine.memory_bytes).filter(|n| *n > 0);
    convert::memory(&root, None)
}

fn rlimit(at: Timestamp, (running, most): (u64, u64)) -> RlimitStats {
    RlimitStats { time: at, maxpid: i64::try_from(most).ok(), curproc: i64::try_from(running).ok() }
}

fn runtime_stats(disks: &NodeDisks) -> RuntimeStats {
    let stats = |of: &RuntimeFs| convert::fs(of.at, of.fs.as_ref(), of.used);
    RuntimeStats {
        image_fs: Some(stats(&disks.images)),
        container_fs: Some(stats(disks.containers.as_ref().unwrap_or(&disks.images))),
    }
}

fn system_stats(system: &SystemReading, samples: &mut Samples) -> ContainerStats {
    let r = &system.reading;
    ContainerStats {
        name: system.name.to_owned(),
        start_time: r.created,
        cpu: convert::cpu(r, &system.path, samples),
        memory: convert::memory(r, None),
        io: convert::io(r),
        swap: convert::swap(r, None),
        ..ContainerStats::default()
    }
}

fn pod_stats(node: &NodeReadings, pod: &PodReadings, runtime: &FromRuntime, samples: &mut Samples) -> Option<PodStats> {
    let measured = pod.containers.iter().filter_map(|c| container_stats(node, c, runtime, samples));
    let containers: Vec<ContainerStats> = measured.collect();
    if containers.is_empty() {
        return None;
    }
    let cgroup = pod.cgroup.as_ref();
    let readings = || pod.containers.iter().filter_map(|c| c.cgroup.as_ref());
    let counted = readings().filter_map(|(_, r)| r.tasks.processes).reduce(u64::saturating_add);
    Some(PodStats {
        pod_ref: pod.reference.clone(),
        start_time: pod.started,
        cpu: cgroup.and_then(|(path, r)| convert::cpu(r, path, samples)),
        memory: cgroup.and_then(|(_, r)| convert::memory(r, None)),
        io: cgroup.and_then(|(_, r)| convert::io(r)),
        network: pod.network.as_ref().map(|n| convert::network(node.at, n)),
        volumes: pod.volumes.iter().map(|v| v.stats.clone()).collect::<Vec<VolumeStats>>(),
        ephemeral_storage: node.disks.as_ref().map(|d| ephemeral(node.at, d, pod, &containers)),
        process_stats: counted.map(|process_count| ProcessStats { process_count }),
        swap: cgroup.and_then(|(_, r)| convert::swap(r, None)),
        containers,
    })
}

/// Whether there are numbers of this container without the runtime.
#[must_use]
pub fn measured(container: &ContainerReadings) -> bool {
    container.cgroup.as_ref().is_some_and(|(_, r)| r.cpu.usage_ns.is_some() && r.memory.working_set().is_some())
}

/// The kernel's numbers where it has them, else the runtime's.
fn container_stats(
    node: &NodeReadings,
    container: &ContainerReadings,
    runtime: &FromRuntime,
    samples: &mut Samples,
) -> Option<ContainerStats> {
    let told = runtime.containers.get(&container.id);
    let nothing = CgroupReading::default();
    let (path, r) = container.cgroup.as_ref().map_or(("", &nothing), |(path, r)| (path.as_str(), r));
    let cpu = match convert::cpu(r, path, samples) {
        // The runtime may know a rate while there is only one sample.
        Some(mut cpu) => {
            let theirs = told.and_then(|t| t.cpu?.usage_nano_cores).map(|v| v.value).filter(|n| *n > 0);
            cpu.usage_nano_cores = cpu.usage_nano_cores.or(theirs);
            Some(cpu)
        }
        None => told.and_then(|t| convert::cpu_of_runtime(t.cpu.as_ref()?, &container.id, samples)),
    };
    let memory = convert::memory(r, None).or_else(|| told.and_then(|t| convert::memory_of_runtime(t.memory.as_ref()?)));
    if cpu.is_none() && memory.is_none() && told.is_none() {
        return None;
    }
    let disks = node.disks.as_ref();
    let layer = told.and_then(|t| t.writable_layer.as_ref()).filter(|_| disks.is_some());
    Some(ContainerStats {
        name: container.name.clone(),
        start_time: container.created,
        cpu,
        memory,
        io: convert::io(r).or_else(|| told.and_then(|t| convert::io_of_runtime(t.io.as_ref()?))),
        rootfs: layer.map(|layer| {
            let mount = layer.fs_id.as_ref().and_then(|id| runtime.mounts.get(&id.mountpoint));
            convert::fs(Timestamp(layer.timestamp), mount, convert::layer_used(layer))
        }),
        logs: disks.and_then(|d| Some(convert::fs(node.at, Some(&d.root), convert::used(container.logs?)))),
        swap: convert::swap(r, Some(node.machine.swap_bytes))
            .or_else(|| told.and_then(|t| Some(convert::swap_of_runtime(t.swap.as_ref()?)))),
    })
}

/// Writable layers, logs, volumes on disk, files in the log directory, `etc-hosts` (node-and-resources 9.2).
fn ephemeral(at: Timestamp, disks: &NodeDisks, pod: &PodReadings, containers: &[ContainerStats]) -> FsStats {
    let of = |fs: &FsStats| DiskUse { bytes: fs.used_bytes.unwrap_or(0), inodes: fs.inodes_used.unwrap_or(0) };
    let layers = containers.iter().filter_map(|c| c.rootfs.as_ref());
    let volumes = pod.volumes.iter().filter(|v| v.is_local).map(|v: &MeasuredVolume| &v.stats.fs);
    let parts: Vec<&FsStats> = layers.chain(containers.iter().filter_map(|c| c.logs.as_ref())).chain(volumes).collect();
    let files = [pod.log_files, pod.hosts_file].into_iter().flatten().fold(DiskUse::default(), DiskUse::plus);
    let sum = parts.iter().fold(files, |sum, part| sum.plus(of(part)));
    let newest = parts.iter().map(|part| part.time).max().unwrap_or(at).max(at);
    convert::fs(newest, Some(&disks.root), convert::used(sum))
}
