//! Numbers of the machine, limits, sums.

use std::sync::Arc;

use cri_api::v1;
use model::Timestamp;
use model::reading::DiskUse;
use model::stats::{FsStats, VolumeStats};

use super::{NOW, container, disk, interface, node, pod, used};
use crate::{FromRuntime, MeasuredVolume, NodeDisks, NodeReadings, RuntimeFs, Samples, SystemReading, summary};

fn with_disks() -> NodeReadings {
    let images = RuntimeFs { at: Timestamp::from_secs(5), fs: Some(disk()), used: (Some(60), Some(7)) };
    NodeReadings {
        disks: Some(NodeDisks { root: disk(), images, containers: None, processes: (359, 32_768) }),
        network: Some(vec![interface("cni0", 3), interface("eth0", 100)]),
        ..node()
    }
}

#[test]
fn the_machines_memory_is_the_limit_of_the_node() {
    let answer = summary(&node(), &[], &FromRuntime::default(), &mut Samples::default());
    let memory = answer.node.memory.unwrap();
    assert_eq!((memory.usage_bytes, memory.working_set_bytes), (Some(4000), Some(3000)));
    assert_eq!(memory.available_bytes, Some(7000));
    let swap = answer.node.swap.unwrap();
    assert_eq!((swap.swap_available_bytes, swap.swap_usage_bytes), (Some(500), Some(0)));
    assert_eq!(answer.node.start_time, Timestamp::from_secs(1_795_100_000));
    assert!(answer.node.fs.is_none() && answer.node.network.is_none() && answer.node.rlimit.is_none());
}

#[test]
fn what_is_available_needs_a_limit() {
    // memory limit, swap limit of the cgroup; available memory, swap of a container, swap of a pod
    let table = [
        (None, None, None, Some(500), None),
        (Some(1000), None, Some(700), Some(500), None),
        (Some(100), Some(30), Some(0), Some(30), Some(30)),
        (None, Some(9000), None, Some(500), Some(9000)),
    ];
    for (limit, swap_limit, memory, of_container, of_pod) in table {
        let mut reading = used(1, 400);
        (reading.memory.limit, reading.memory.swap_limit) = (limit, swap_limit);
        let mut one = pod("p", vec![container("app", Some(reading.clone()))]);
        one.cgroup = Some(("/pod".into(), reading));
        let answer = summary(&node(), &[one], &FromRuntime::default(), &mut Samples::default());
        let p = &answer.pods[0];
        let row = format!("{limit:?} {swap_limit:?}");
        assert_eq!(p.memory.unwrap().available_bytes, memory, "{row}");
        assert_eq!(p.containers[0].memory.unwrap().available_bytes, memory, "{row}");
        assert_eq!(p.containers[0].swap.unwrap().swap_available_bytes, of_container, "{row}");
        assert_eq!(p.swap.unwrap().swap_available_bytes, of_pod, "{row}");
    }
}

#[test]
fn disks_network_and_processes_of_the_node() {
    let answer = summary(&with_disks(), &[], &FromRuntime::default(), &mut Samples::default());
    let fs = answer.node.fs.unwrap();
    assert_eq!((fs.capacity_bytes, fs.available_bytes, fs.used_bytes), (Some(1000), Some(500), Some(400)));
    assert_eq!((fs.inodes, fs.inodes_free, fs.inodes_used), (Some(100), Some(40), Some(60)));
    let runtime = answer.node.runtime.unwrap();
    assert_eq!(runtime.image_fs, runtime.container_fs, "not apart");
    let image = runtime.image_fs.unwrap();
    assert_eq!((image.used_bytes, image.inodes_used, image.capacity_bytes), (Some(60), Some(7), Some(1000)));
    assert_eq!(image.time, Timestamp::from_secs(5));
    let rlimit = answer.node.rlimit.unwrap();
    assert_eq!((rlimit.maxpid, rlimit.curproc), (Some(32_768), Some(359)));
    let network = answer.node.network.unwrap();
    assert_eq!(network.default_interface.name, "eth0");
    assert_eq!(network.default_interface.tx_bytes, Some(200));
    assert_eq!(network.interfaces.len(), 2);
}

#[test]
fn writable_layers_apart_and_file_systems_without_inodes() {
    let mut node = with_disks();
    let disks = node.disks.as_mut().unwrap();
    disks.root.inodes = 0;
    disks.containers = Some(RuntimeFs { at: NOW, fs: None, used: (Some(1), None) });
    let answer = summary(&node, &[], &FromRuntime::default(), &mut Samples::default());
    let fs = answer.node.fs.unwrap();
    assert_eq!((fs.inodes, fs.inodes_free, fs.inodes_used), (None, None, None));
    let apart = answer.node.runtime.unwrap().container_fs.unwrap();
    assert_eq!((apart.used_bytes, apart.capacity_bytes, apart.inodes_used), (Some(1), None, None));
}

#[test]
fn without_eth0_the_default_interface_has_no_name_and_no_counters() {
    let mut one = pod("p", vec![container("app", Some(used(1, 4)))]);
    one.network = Some(vec![interface("net1", 5)]);
    let answer = summary(&with_disks(), &[one], &FromRuntime::default(), &mut Samples::default());
    let network = answer.pods[0].network.clone().unwrap();
    assert_eq!((network.default_interface.name.as_str(), network.default_interface.rx_bytes), ("", None));
    assert_eq!(network.interfaces[0].rx_bytes, Some(5));
}

#[test]
fn systems_are_told_without_network_and_disks() {
    let mut node = with_disks();
    let mut reading = used(9, 400);
    reading.memory.limit = Some(1000);
    node.systems = vec![SystemReading { name: "pods", path: "/kubepods".into(), reading }];
    let answer = summary(&node, &[], &FromRuntime::default(), &mut Samples::default());
    let pods = &answer.node.system_containers[0];
    assert_eq!(pods.name, "pods");
    assert_eq!(pods.memory.unwrap().available_bytes, Some(700), "what eviction by allocatable memory looks at");
    assert!(pods.rootfs.is_none() && pods.logs.is_none());
    assert_eq!(pods.start_time, Timestamp::from_secs(1_795_160_000));
}

fn volume(name: &str, bytes: u64, is_local: bool) -> MeasuredVolume {
    let fs = FsStats { used_bytes: Some(bytes), inodes_used: Some(1), ..FsStats::default() };
    MeasuredVolume { stats: VolumeStats { fs, name: name.into(), ..VolumeStats::default() }, is_local }
}

/// Edge 53: what a secret holds, or memory, is not among them.
#[test]
fn ephemeral_storage_is_layers_logs_files_and_local_volumes() {
    let use_of = |bytes, inodes| Some(DiskUse { bytes, inodes });
    let mut app = container("app", Some(used(1, 4)));
    app.logs = use_of(100, 2);
    let mut one = pod("p", vec![app]);
    one.log_files = use_of(20, 1);
    one.hosts_file = use_of(3, 1);
    one.volumes = Arc::from([volume("scratch", 4000, true), volume("token", 50_000, false)]);
    let layer = v1::FilesystemUsage {
        timestamp: NOW.plus(std::time::Duration::from_secs(9)).0,
        fs_id: Some(v1::FilesystemIdentifier { mountpoint: "/layers".into() }),
        used_bytes: Some(v1::UInt64Value { value: 1_000_000 }),
        inodes_used: Some(v1::UInt64Value { value: 10 }),
    };
    let stats = v1::ContainerStats { writable_layer: Some(layer), ..v1::ContainerStats::default() };
    let mut other = disk();
    other.total_bytes = 77;
    let told = FromRuntime {
        containers: [("id-app".to_owned(), stats)].into(),
        mounts: [("/layers".to_owned(), other)].into(),
    };
    let answer = summary(&with_disks(), &[one.clone()], &told, &mut Samples::default());
    let p = &answer.pods[0];
    let sum = p.ephemeral_storage.unwrap();
    assert_eq!((sum.used_bytes, sum.inodes_used), (Some(1_004_123), Some(15)));
    assert_eq!(sum.capacity_bytes, Some(1000), "room is that of the root directory");
    assert_eq!(sum.time.0, NOW.0 + 9_000_000_000, "the newest of its parts");
    let c = &p.containers[0];
    assert_eq!(c.rootfs.unwrap().capacity_bytes, Some(77), "room is that of the layers' own file system");
    assert_eq!((c.logs.unwrap().used_bytes, c.logs.unwrap().capacity_bytes), (Some(100), Some(1000)));
    assert_eq!(p.volumes.len(), 2);
    assert_eq!(p.process_stats.unwrap().process_count, 2);

    let brief = summary(&node(), &[one], &told, &mut Samples::default());
    let c = &brief.pods[0].containers[0];
    assert!(c.rootfs.is_none() && c.logs.is_none() && brief.pods[0].ephemeral_storage.is_none());
}
