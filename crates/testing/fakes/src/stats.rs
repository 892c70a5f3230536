//! Statistics: trees of files that look like a host's counters, and what a runtime tells of containers.

use std::fs;
use std::path::{Path, PathBuf};

use cri_api::v1;
use host_linux::LinuxStats;

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

/// Images and layers below a path, with what they take.
#[must_use]
pub fn image_fs(mount_point: &str) -> v1::ImageFsInfoResponse {
    let image_filesystems = vec![layer(mount_point, 60_000, 400)];
    v1::ImageFsInfoResponse { image_filesystems, container_filesystems: Vec::new() }
}
