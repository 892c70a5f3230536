//! What pods and containers use, by the cgroup reader of this repository.

use cri_api::v1;
use model::reading::{CgroupReading, Depth, InterfaceReading};
use ports::stats::StatsSource;

use crate::cgroups;
use crate::container::volumes;
use crate::records::{ContainerRecord, PodStage, SandboxRecord};
use crate::runtime::Runtime;

/// Entries of a writable layer that are counted; a fuller one has at least what is told, rather than that a disk is kept busy.
const MAX_ENTRIES: u64 = 200_000;

fn number(value: Option<u64>) -> Option<v1::UInt64Value> {
    value.map(|value| v1::UInt64Value { value })
}

fn cpu(reading: &CgroupReading) -> v1::CpuUsage {
    v1::CpuUsage {
        timestamp: reading.at.0,
        usage_core_nano_seconds: number(reading.cpu.usage_ns),
        ..v1::CpuUsage::default()
    }
}

fn memory(reading: &CgroupReading) -> v1::MemoryUsage {
    let m = &reading.memory;
    let available = m.limit.zip(m.working_set()).map(|(limit, used)| limit.saturating_sub(used));
    v1::MemoryUsage {
        timestamp: reading.at.0,
        working_set_bytes: number(m.working_set()),
        available_bytes: number(available),
        usage_bytes: number(m.usage),
        rss_bytes: number(m.rss),
        page_faults: number(m.page_faults),
        major_page_faults: number(m.major_page_faults),
        psi: None,
    }
}

/// A container; `None` where it has no cgroup.
pub(crate) fn container(rt: &Runtime, sandbox: &SandboxRecord, record: &ContainerRecord) -> v1::ContainerStats {
    let cgroup = cgroups::of_container(rt, sandbox, &record.id);
    let reading = cgroup.and_then(|c| rt.stats.cgroup(&c, Depth::Summary));
    let folder = rt.options.containers_root(&record.pod).join(&record.id);
    let at = pod_supervisor::now();
    // Of image volumes there is something where they are copies.
    let copies = rt.stats.tree(&folder.join(volumes::FOLDER), MAX_ENTRIES).unwrap_or_default();
    let used = rt.stats.tree(&folder.join("upper"), MAX_ENTRIES).map(|upper| upper.plus(copies));
    let writable = used.map(|used| v1::FilesystemUsage {
        timestamp: at,
        fs_id: Some(v1::FilesystemIdentifier { mountpoint: rt.options.root.to_string_lossy().into_owned() }),
        used_bytes: number(Some(used.bytes)),
        inodes_used: number(Some(used.inodes)),
    });
    v1::ContainerStats {
        attributes: Some(v1::ContainerAttributes {
            id: record.id.clone(),
            metadata: record.config.metadata.clone(),
            labels: record.config.labels.clone(),
            annotations: record.config.annotations.clone(),
        }),
        cpu: reading.as_ref().map(cpu),
        memory: reading.as_ref().map(memory),
        writable_layer: writable,
        swap: reading.as_ref().map(|r| v1::SwapUsage {
            timestamp: r.at.0,
            swap_available_bytes: None,
            swap_usage_bytes: number(r.memory.swap),
        }),
        io: None,
    }
}

/// A pod: its parent cgroup's numbers, its network's, those of its containers.
pub(crate) fn pod(rt: &Runtime, sandbox: &SandboxRecord) -> v1::PodSandboxStats {
    let containers = rt.containers_of(&sandbox.id).into_iter().map(|c| c.record());
    let running: Vec<ContainerRecord> =
        containers.filter(|c| c.state() == v1::ContainerState::ContainerRunning).collect();
    let parent = Some(sandbox.cgroup_parent()).filter(|p| !p.is_empty());
    let reading = parent.and_then(|p| rt.stats.cgroup(&container_spec::slice_of(p), Depth::Summary));
    let process = running.iter().find_map(|c| u32::try_from(c.pid).ok().filter(|p| *p > 0));
    let network = process.filter(|_| !sandbox.host_network()).and_then(|p| rt.stats.network(Some(p)));
    let at = pod_supervisor::now();
    let linux = v1::LinuxPodSandboxStats {
        cpu: reading.as_ref().map(cpu),
        memory: reading.as_ref().map(memory),
        network: network.map(|interfaces| network_usage(at, &interfaces)),
        process: reading
            .as_ref()
            .map(|r| v1::ProcessUsage { timestamp: r.at.0, process_count: number(r.tasks.processes) }),
        containers: running.iter().map(|c| container(rt, sandbox, c)).collect(),
        io: None,
    };
    v1::PodSandboxStats {
        attributes: Some(v1::PodSandboxAttributes {
            id: sandbox.id.clone(),
            metadata: sandbox.config.metadata.clone(),
            labels: sandbox.config.labels.clone(),
            annotations: sandbox.config.annotations.clone(),
        }),
        linux: Some(linux),
    }
}

fn network_usage(at: i64, interfaces: &[InterfaceReading]) -> v1::NetworkUsage {
    let one = |i: &InterfaceReading| v1::NetworkInterfaceUsage {
        name: i.name.clone(),
        rx_bytes: number(Some(i.received.bytes)),
        rx_errors: number(Some(i.received.errors)),
        tx_bytes: number(Some(i.sent.bytes)),
        tx_errors: number(Some(i.sent.errors)),
    };
    let others = || interfaces.iter().filter(|i| i.name != "lo");
    v1::NetworkUsage {
        timestamp: at,
        default_interface: others().find(|i| i.name == "eth0").map(one),
        interfaces: others().filter(|i| i.name != "eth0").map(one).collect(),
    }
}

/// Whether a pod's numbers are worth asking for.
pub(crate) fn counts(sandbox: &SandboxRecord) -> bool {
    sandbox.stage == PodStage::Ready && !sandbox.cgroup_parent().is_empty()
}
