//! Statistics: a runtime that answers nothing but them, and trees of files that look like a host's counters.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use cri_api::v1;
use host_linux::LinuxStats;
use ports::runtime::{ContainerRuntime, EventStream, ImageService, RuntimeCode, RuntimeError, RuntimeResult};
use tokio::sync::Semaphore;

/// Which cgroups a host has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cgroups {
    /// A tree per controller.
    V1,
    /// The unified tree.
    V2,
}

/// Counters of a host in a folder.
#[derive(Clone, Debug)]
pub struct StatsTree {
    root: PathBuf,
    cgroups: Cgroups,
}

/// Every line that each kernel has.
const MEMINFO: &str = "MemTotal:  4194304 kB\nMemFree: 1000000 kB\nSwapTotal: 1024 kB\nSwapFree: 1024 kB\n\
    Buffers: 0 kB\nCached: 0 kB\nSwapCached: 0 kB\nActive: 0 kB\nInactive: 0 kB\nDirty: 0 kB\nWriteback: 0 kB\nMapped: 0 kB\nSlab: 0 kB\n\
    Committed_AS: 0 kB\nVmallocTotal: 0 kB\nVmallocUsed: 0 kB\nVmallocChunk: 0 kB\n";

const PSI: &str =
    "some avg10=0.25 avg60=0.10 avg300=0.00 total=1500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=300\n";

impl StatsTree {
    /// A machine with 4 GiB of memory, two processors, one disk and one interface, in an empty folder.
    #[must_use]
    pub fn new(root: &Path, cgroups: Cgroups) -> Self {
        let tree = Self { root: root.to_owned(), cgroups };
        let interfaces = "Inter-| Receive | Transmit\n face |bytes\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  \
                          eth0: 1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0\n  cni0: 30 3 0 0 0 0 0 0 40 4 0 0 0 0 0 0\n";
        for (file, text) in [
            ("proc/stat", "cpu  1 2 3\nbtime 1700000000\n"),
            ("proc/loadavg", "0.20 0.18 0.12 1/359 11206\n"),
            ("proc/sys/kernel/pid_max", "32768\n"),
            ("proc/sys/kernel/threads-max", "100000\n"),
            ("proc/sys/kernel/random/boot_id", "boot-1\n"),
            ("proc/meminfo", MEMINFO),
            ("proc/self/net/dev", interfaces),
            ("proc/pressure/cpu", PSI),
            ("proc/pressure/memory", PSI),
            ("proc/pressure/io", PSI),
            ("proc/diskstats", " 254 0 vda 1 2 3 4 5 6 7 8 9 10 11\n"),
            ("etc/machine-id", "machine-1\n"),
            ("etc/os-release", "PRETTY_NAME=\"Some Linux\"\n"),
            ("sys/devices/system/cpu/online", "0-1\n"),
            ("sys/devices/system/cpu/cpu0/topology/core_id", "0\n"),
            ("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"),
            ("sys/devices/system/cpu/cpu1/topology/core_id", "1\n"),
            ("sys/devices/system/cpu/cpu1/topology/physical_package_id", "0\n"),
        ] {
            tree.write(file, text);
        }
        let here = root.display();
        tree.write("proc/self/mountinfo", &format!("27 1 254:0 / {here} rw - ext4 /dev/vda rw\n"));
        fs::create_dir_all(root.join("sys/dev/block")).expect("a folder");
        std::os::unix::fs::symlink("../../block/vda", root.join("sys/dev/block/254:0")).expect("a link");
        tree.cgroup("/", 100, &[]);
        tree
    }

    /// Reads it.
    #[must_use]
    pub fn source(&self) -> LinuxStats {
        match self.cgroups {
            Cgroups::V1 => LinuxStats::v1_in(&self.root),
            Cgroups::V2 => LinuxStats::v2_in(&self.root),
        }
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Writes a file below the folder.
    pub fn write(&self, file: &str, text: &str) {
        let path = self.root.join(file.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// A cgroup that has used `n` milliseconds and `n` MiB, with processes in it. Writes it anew when it is there.
    pub fn cgroup(&self, path: &str, n: u64, processes: &[u32]) {
        let procs: String = processes.iter().map(|p| format!("{p}\n")).collect();
        match self.cgroups {
            Cgroups::V1 => self.v1(path, n, &procs),
            Cgroups::V2 => self.v2(path, n, &procs),
        }
        for pid in processes {
            let dev =
                " face |bytes\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 11 2 0 0 0 0 0 0 22 3 0 0 0 0 0 0\n";
            self.write(&format!("proc/{pid}/net/dev"), dev);
            self.write(&format!("proc/{pid}/limits"), "Max open files            1024       4096       files\n");
            self.write(&format!("proc/{pid}/fd/0"), "");
        }
    }

    /// Takes a cgroup away.
    pub fn remove_cgroup(&self, path: &str) {
        let controllers: &[&str] = if self.cgroups == Cgroups::V2 { &[""] } else { &V1_CONTROLLERS };
        for controller in controllers {
            let _absent_is_fine = fs::remove_dir_all(self.root.join("cgroup").join(controller).join(&path[1..]));
        }
    }

    fn v1(&self, path: &str, n: u64, procs: &str) {
        let (ns, bytes) = (n * 1_000_000, n << 20);
        let stat = format!(
            "cache 0\nrss 0\nrss_huge 0\nshmem 0\nmapped_file 0\ndirty 0\nwriteback 0\nworkingset_refault_anon 0\n\
             workingset_refault_file 0\nswap 0\nswapcached 0\npgpgin 1\npgpgout 1\npgfault {n}\npgmajfault 0\n\
             inactive_anon 0\nactive_anon 0\ninactive_file 0\nactive_file 0\nunevictable 0\n\
             hierarchical_memory_limit 9223372036854771712\nhierarchical_memsw_limit 9223372036854771712\n\
             total_cache {bytes}\ntotal_rss {bytes}\ntotal_rss_huge 0\ntotal_shmem 0\ntotal_mapped_file 4096\n\
             total_dirty 0\ntotal_writeback 0\ntotal_workingset_refault_anon 0\ntotal_workingset_refault_file 0\n\
             total_swap 0\ntotal_swapcached 0\ntotal_pgpgin 1\ntotal_pgpgout 1\ntotal_pgfault {n}\n\
             total_pgmajfault 0\ntotal_inactive_anon 0\ntotal_active_anon 0\ntotal_inactive_file 4096\n\
             total_active_file 8192\ntotal_unevictable 0\n"
        );
        let limit = ((n + 64) << 20).to_string();
        for (file, text) in [
            ("cpuacct/{}/cpuacct.usage", format!("{ns}\n")),
            ("cpuacct/{}/cpuacct.usage_user", format!("{}\n", ns / 2)),
            ("cpuacct/{}/cpuacct.usage_sys", format!("{}\n", ns / 2)),
            ("cpuacct/{}/cgroup.procs", procs.to_owned()),
            ("cpu/{}/cpu.shares", "1024\n".into()),
            ("cpu/{}/cpu.cfs_quota_us", "50000\n".into()),
            ("cpu/{}/cpu.cfs_period_us", "100000\n".into()),
            ("cpu/{}/cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 3\nnr_bursts 0\nburst_time 0\n".into()),
            ("memory/{}/memory.usage_in_bytes", format!("{bytes}\n")),
            ("memory/{}/memory.stat", stat),
            ("memory/{}/memory.limit_in_bytes", limit.clone()),
            ("memory/{}/memory.memsw.limit_in_bytes", limit),
            ("memory/{}/memory.soft_limit_in_bytes", "9223372036854771712\n".into()),
            ("memory/{}/memory.failcnt", "0\n".into()),
            ("memory/{}/memory.max_usage_in_bytes", format!("{bytes}\n")),
            ("memory/{}/memory.kmem.usage_in_bytes", "8192\n".into()),
            ("memory/{}/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n".into()),
            ("pids/{}/pids.current", "3\n".into()),
            ("pids/{}/pids.max", "max\n".into()),
            ("blkio/{}/blkio.throttle.io_service_bytes_recursive", "254:0 Read 4096\n254:0 Write 0\nTotal 1\n".into()),
            ("blkio/{}/blkio.throttle.io_serviced_recursive", "254:0 Read 1\n254:0 Write 0\nTotal 1\n".into()),
        ] {
            self.write(&format!("cgroup/{}", file.replace("{}", path.trim_matches('/'))), &text);
        }
    }

    fn v2(&self, path: &str, n: u64, procs: &str) {
        let (us, bytes) = (n * 1000, n << 20);
        let filler: String = V2_MEMORY_STAT.iter().map(|key| format!("{key} 0\n")).collect();
        let stat = format!(
            "anon {bytes}\nfile {bytes}\nkernel 8192\nfile_mapped 4096\ninactive_file 4096\nactive_file 8192\n{filler}\
             pgfault {n}\npgmajfault 0\n"
        );
        let half = us / 2;
        let below = path.trim_matches('/');
        for (file, text) in [
            (
                "cpu.stat",
                format!(
                    "usage_usec {us}\nuser_usec {half}\nsystem_usec {half}\nnice_usec 0\nnr_periods 9\nnr_throttled 2\n\
                     throttled_usec 3\nnr_bursts 0\nburst_usec 0\n"
                ),
            ),
            ("cpu.weight", "39\n".into()),
            ("cpu.max", "50000 100000\n".into()),
            ("cpu.pressure", PSI.into()),
            ("memory.pressure", PSI.into()),
            ("io.pressure", PSI.into()),
            ("memory.current", format!("{bytes}\n")),
            ("memory.stat", stat),
            ("memory.max", format!("{}\n", (n + 64) << 20)),
            ("memory.low", "0\n".into()),
            ("memory.peak", format!("{bytes}\n")),
            ("memory.swap.current", "0\n".into()),
            ("memory.swap.max", "0\n".into()),
            ("memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n".into()),
            ("io.stat", "254:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n".into()),
            ("pids.current", "3\n".into()),
            ("pids.max", "max\n".into()),
            ("cgroup.procs", procs.to_owned()),
        ] {
            // The root lacks what only a limit gives a sense.
            let limits =
                ["memory.current", "memory.max", "memory.low", "memory.swap", "pids.", "cpu.max", "cpu.weight"];
            if below.is_empty() && limits.iter().any(|l| file.starts_with(l)) {
                continue;
            }
            self.write(&format!("cgroup/{below}/{file}"), &text);
        }
    }
}

const V1_CONTROLLERS: [&str; 5] = ["cpu", "cpuacct", "memory", "pids", "blkio"];

/// What else the file holds: a reader has to get past it.
const V2_MEMORY_STAT: [&str; 46] = [
    "kernel_stack",
    "pagetables",
    "sec_pagetables",
    "percpu",
    "sock",
    "vmalloc",
    "shmem",
    "zswap",
    "zswapped",
    "file_dirty",
    "file_writeback",
    "swapcached",
    "anon_thp",
    "file_thp",
    "shmem_thp",
    "inactive_anon",
    "active_anon",
    "unevictable",
    "slab_reclaimable",
    "slab_unreclaimable",
    "slab",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "workingset_restore_anon",
    "workingset_restore_file",
    "workingset_nodereclaim",
    "pgdemote_kswapd",
    "pgdemote_direct",
    "pgdemote_khugepaged",
    "pgpromote_success",
    "pgscan",
    "pgsteal",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgrefill",
    "pgactivate",
    "pgdeactivate",
    "pglazyfree",
    "pglazyfreed",
    "thp_fault_alloc",
    "thp_collapse_alloc",
    "zswpin",
];

/// A runtime that only tells statistics.
#[derive(Debug)]
pub struct StatsRuntime {
    containers: Mutex<RuntimeResult<Vec<v1::ContainerStats>>>,
    images: Mutex<RuntimeResult<v1::ImageFsInfoResponse>>,
    asked: AtomicUsize,
    panics: AtomicBool,
    gate: Semaphore,
}

impl Default for StatsRuntime {
    fn default() -> Self {
        Self {
            containers: Mutex::new(Ok(Vec::new())),
            images: Mutex::new(Ok(v1::ImageFsInfoResponse::default())),
            asked: AtomicUsize::new(0),
            panics: AtomicBool::new(false),
            gate: Semaphore::new(1 << 20),
        }
    }
}

impl StatsRuntime {
    /// Answers `ListContainerStats` with these from now on.
    pub fn set_containers(&self, answer: RuntimeResult<Vec<v1::ContainerStats>>) {
        *self.containers.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    /// Answers `ImageFsInfo` with this from now on.
    pub fn set_images(&self, answer: RuntimeResult<v1::ImageFsInfoResponse>) {
        *self.images.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    /// Images and layers below a path, with what they take.
    pub fn set_image_fs(&self, mount_point: &str) {
        let image_filesystems = vec![layer(mount_point, 60_000, 400)];
        self.set_images(Ok(v1::ImageFsInfoResponse { image_filesystems, container_filesystems: Vec::new() }));
    }

    /// How often `ListContainerStats` was asked.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Keeps `ListContainerStats` from answering, until [`Self::open`].
    pub fn close(&self) {
        self.gate.forget_permits(1 << 20);
    }

    /// The next `ListContainerStats` panics.
    pub fn panic_once(&self) {
        self.panics.store(true, Ordering::SeqCst);
    }

    /// Lets it answer again.
    pub fn open(&self) {
        self.gate.add_permits(1 << 20);
    }
}

/// Usage of a file system.
#[must_use]
pub fn layer(mount_point: &str, bytes: u64, inodes: u64) -> v1::FilesystemUsage {
    v1::FilesystemUsage {
        timestamp: 1_700_000_000_000_000_000,
        fs_id: Some(v1::FilesystemIdentifier { mountpoint: mount_point.to_owned() }),
        used_bytes: Some(v1::UInt64Value { value: bytes }),
        inodes_used: Some(v1::UInt64Value { value: inodes }),
    }
}

/// What containerd tells of a container: processor, memory, writable layer.
#[must_use]
pub fn container(id: &str, mount_point: &str) -> v1::ContainerStats {
    let number = |value| Some(v1::UInt64Value { value });
    let timestamp = 1_700_000_000_000_000_000;
    v1::ContainerStats {
        attributes: Some(v1::ContainerAttributes { id: id.to_owned(), ..v1::ContainerAttributes::default() }),
        cpu: Some(v1::CpuUsage { timestamp, usage_core_nano_seconds: number(7_000_000), ..v1::CpuUsage::default() }),
        memory: Some(v1::MemoryUsage {
            timestamp,
            working_set_bytes: number(300_000),
            usage_bytes: number(400_000),
            ..v1::MemoryUsage::default()
        }),
        writable_layer: Some(layer(mount_point, 32_768, 10)),
        ..v1::ContainerStats::default()
    }
}

fn not_here<T>() -> RuntimeResult<T> {
    Err(RuntimeError::new(RuntimeCode::Unimplemented, "this runtime only tells statistics"))
}

macro_rules! not_here {
    ($($name:ident($request:ty) -> $answer:ty;)*) => {
        #[async_trait]
        impl ContainerRuntime for StatsRuntime {
            $(async fn $name(&self, _: $request) -> RuntimeResult<$answer> { not_here() })*

            async fn version(&self) -> RuntimeResult<v1::VersionResponse> {
                not_here()
            }
            async fn runtime_config(&self) -> RuntimeResult<v1::RuntimeConfigResponse> {
                not_here()
            }
            async fn events(&self) -> RuntimeResult<EventStream> {
                not_here()
            }
            async fn list_container_stats(
                &self,
                _: v1::ListContainerStatsRequest,
            ) -> RuntimeResult<v1::ListContainerStatsResponse> {
                self.asked.fetch_add(1, Ordering::SeqCst);
                assert!(!self.panics.swap(false, Ordering::SeqCst), "told to panic");
                let _open = self.gate.acquire().await;
                let answer = self.containers.lock().unwrap_or_else(PoisonError::into_inner).clone();
                answer.map(|stats| v1::ListContainerStatsResponse { stats })
            }
        }
    };
}

not_here! {
    status(bool) -> v1::StatusResponse;
    update_runtime_config(v1::UpdateRuntimeConfigRequest) -> ();
    run_pod_sandbox(v1::RunPodSandboxRequest) -> v1::RunPodSandboxResponse;
    stop_pod_sandbox(v1::StopPodSandboxRequest) -> ();
    remove_pod_sandbox(v1::RemovePodSandboxRequest) -> ();
    pod_sandbox_status(v1::PodSandboxStatusRequest) -> v1::PodSandboxStatusResponse;
    list_pod_sandbox(v1::ListPodSandboxRequest) -> v1::ListPodSandboxResponse;
    update_pod_sandbox_resources(v1::UpdatePodSandboxResourcesRequest) -> ();
    create_container(v1::CreateContainerRequest) -> v1::CreateContainerResponse;
    start_container(v1::StartContainerRequest) -> ();
    stop_container(v1::StopContainerRequest) -> ();
    remove_container(v1::RemoveContainerRequest) -> ();
    list_containers(v1::ListContainersRequest) -> v1::ListContainersResponse;
    container_status(v1::ContainerStatusRequest) -> v1::ContainerStatusResponse;
    update_container_resources(v1::UpdateContainerResourcesRequest) -> ();
    reopen_container_log(v1::ReopenContainerLogRequest) -> ();
    checkpoint_container(v1::CheckpointContainerRequest) -> ();
    exec_sync(v1::ExecSyncRequest) -> v1::ExecSyncResponse;
    exec(v1::ExecRequest) -> v1::ExecResponse;
    attach(v1::AttachRequest) -> v1::AttachResponse;
    port_forward(v1::PortForwardRequest) -> v1::PortForwardResponse;
    pod_sandbox_stats(v1::PodSandboxStatsRequest) -> v1::PodSandboxStatsResponse;
    list_pod_sandbox_stats(v1::ListPodSandboxStatsRequest) -> v1::ListPodSandboxStatsResponse;
}

#[async_trait]
impl ImageService for StatsRuntime {
    async fn list_images(&self, _: v1::ListImagesRequest) -> RuntimeResult<v1::ListImagesResponse> {
        not_here()
    }
    async fn image_status(&self, _: v1::ImageStatusRequest) -> RuntimeResult<v1::ImageStatusResponse> {
        not_here()
    }
    async fn pull_image(&self, _: v1::PullImageRequest) -> RuntimeResult<v1::PullImageResponse> {
        not_here()
    }
    async fn remove_image(&self, _: v1::RemoveImageRequest) -> RuntimeResult<()> {
        not_here()
    }
    async fn image_fs_info(&self) -> RuntimeResult<v1::ImageFsInfoResponse> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Shared as both services.
#[must_use]
pub fn runtime() -> Arc<StatsRuntime> {
    Arc::default()
}
