mod cadvisor;
mod metrics_server;
mod pods;
mod rates;
mod totals;
mod writing;

use std::sync::Arc;

use model::Timestamp;
use model::reading::{
    CgroupReading, CpuReading, FsReading, InterfaceCounters, InterfaceReading, MachineReading, MemoryReading,
    TaskReading,
};

use crate::{ContainerReadings, NodeReadings, PodReadings};

/// A moment of all readings.
const NOW: Timestamp = Timestamp(1_795_165_689_310_000_000);

fn used(cpu_ns: u64, bytes: u64) -> CgroupReading {
    CgroupReading {
        at: NOW,
        created: Timestamp::from_secs(1_795_160_000),
        cpu: CpuReading { usage_ns: Some(cpu_ns), ..CpuReading::default() },
        memory: MemoryReading {
            usage: Some(bytes),
            inactive_file: Some(bytes / 4),
            rss: Some(bytes / 2),
            page_faults: Some(9),
            major_page_faults: Some(1),
            swap: Some(0),
            ..MemoryReading::default()
        },
        tasks: TaskReading { processes: Some(2), ..TaskReading::default() },
        ..CgroupReading::default()
    }
}

fn machine() -> Arc<MachineReading> {
    Arc::new(MachineReading {
        booted: Timestamp::from_secs(1_795_100_000),
        memory_bytes: 10_000,
        swap_bytes: 500,
        cpus: 4,
        cores: Some(2),
        sockets: Some(1),
        machine_id: "m".into(),
        system_uuid: "u".into(),
        boot_id: "b".into(),
        kernel_version: "6.1".into(),
        os_image: "Some \"Linux\"".into(),
    })
}

fn node() -> NodeReadings {
    NodeReadings {
        name: "n1".into(),
        at: NOW,
        machine: machine(),
        root: used(5_000_000_000, 4000),
        ..NodeReadings::default()
    }
}

fn container(name: &str, reading: Option<CgroupReading>) -> ContainerReadings {
    ContainerReadings {
        name: name.into(),
        id: format!("id-{name}"),
        created: Timestamp(1_795_165_679_392_963_600),
        cgroup: reading.map(|r| (format!("/kubepods/pod1/id-{name}"), r)),
        logs: None,
    }
}

fn pod(name: &str, containers: Vec<ContainerReadings>) -> PodReadings {
    let mut pod = PodReadings { containers, started: Timestamp::from_secs(1_795_165_679), ..PodReadings::default() };
    pod.reference.name = name.into();
    pod.reference.namespace = "shop".into();
    pod.reference.uid = format!("uid-{name}");
    pod.cgroup = Some((format!("/kubepods/pod-{name}"), used(30_000_000, 800)));
    pod
}

fn disk() -> FsReading {
    FsReading { total_bytes: 1000, free_bytes: 600, available_bytes: 500, inodes: 100, inodes_free: 40 }
}

fn interface(name: &str, n: u64) -> InterfaceReading {
    let counters = |n| InterfaceCounters { bytes: n, packets: n / 10, errors: 1, dropped: 2 };
    InterfaceReading { name: name.into(), received: counters(n), sent: counters(2 * n) }
}
