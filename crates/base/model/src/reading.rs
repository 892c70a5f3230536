//! What the host says of cgroups, network, disks and itself, before anybody makes statistics of it.
//!
//! Read from files of the kernel (node-and-resources 9.1). A file that is not there is an absent number, never a zero.
//! Times are nanoseconds unless a name says otherwise, sizes bytes.

use crate::Timestamp;
use crate::stats::PsiStats;

/// How much of a cgroup to read: files cost time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Depth {
    /// What `/metrics/resource` needs: processor time, memory, swap.
    Usage,
    /// Pressure and number of processes as well, for `/stats/summary`.
    Summary,
    /// Everything, for `/metrics/cadvisor`.
    Full,
}

/// One cgroup.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CgroupReading {
    /// When it was read.
    pub at: Timestamp,
    /// When it was made; not set when unknown or not asked for.
    pub created: Timestamp,
    /// Processor.
    pub cpu: CpuReading,
    /// Memory.
    pub memory: MemoryReading,
    /// Waits for I/O.
    pub io_psi: Option<PsiStats>,
    /// Disks, one per device ([`Depth::Full`]).
    pub disks: Vec<DiskReading>,
    /// Processes and threads.
    pub tasks: TaskReading,
}

/// Processor of one cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuReading {
    /// Time used.
    pub usage_ns: Option<u64>,
    /// In user mode.
    pub user_ns: Option<u64>,
    /// In the kernel.
    pub system_ns: Option<u64>,
    /// Relative share in v1 terms.
    pub shares: Option<u64>,
    /// CFS quota in microseconds per period; absent: none.
    pub quota_us: Option<u64>,
    /// CFS period in microseconds.
    pub period_us: Option<u64>,
    /// CFS periods that passed.
    pub periods: Option<u64>,
    /// Those in which it was throttled.
    pub throttled_periods: Option<u64>,
    /// Time that it was throttled.
    pub throttled_ns: Option<u64>,
    /// Periods with a burst.
    pub bursts: Option<u64>,
    /// Time above the quota in bursts.
    pub burst_ns: Option<u64>,
    /// Waits.
    pub psi: Option<PsiStats>,
}

/// Memory of one cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryReading {
    /// All, page cache included.
    pub usage: Option<u64>,
    /// Inactive file pages, those of children included.
    pub inactive_file: Option<u64>,
    /// Active file pages, those of children included.
    pub active_file: Option<u64>,
    /// Anonymous memory, that of children included.
    pub rss: Option<u64>,
    /// Page cache, that of children included.
    pub cache: Option<u64>,
    /// Mapped files.
    pub mapped_file: Option<u64>,
    /// Swap in use.
    pub swap: Option<u64>,
    /// Most that it may use; absent: unlimited.
    pub limit: Option<u64>,
    /// Most swap that it may use; absent: unlimited or not limited by this kernel.
    pub swap_limit: Option<u64>,
    /// Memory and swap together (v1) or swap (v2) as the file has it; absent: unlimited.
    pub raw_swap_limit: Option<u64>,
    /// Memory that is kept for it under pressure; absent: no such bound.
    pub reservation: Option<u64>,
    /// Page faults of its own tasks.
    pub page_faults: Option<u64>,
    /// Those that waited for a disk.
    pub major_page_faults: Option<u64>,
    /// Page faults, those of children included.
    pub tree_page_faults: Option<u64>,
    /// Those that waited for a disk, those of children included.
    pub tree_major_page_faults: Option<u64>,
    /// Times that the limit was hit.
    pub limit_hits: Option<u64>,
    /// Highest usage.
    pub max_usage: Option<u64>,
    /// Memory of the kernel for it.
    pub kernel: Option<u64>,
    /// Processes that the kernel killed in it for lack of memory.
    pub oom_kills: Option<u64>,
    /// Waits.
    pub psi: Option<PsiStats>,
}

impl MemoryReading {
    /// Usage less inactive file pages, never below zero.
    #[must_use]
    pub fn working_set(&self) -> Option<u64> {
        Some(self.usage?.saturating_sub(self.inactive_file?))
    }
}

/// One disk as one cgroup uses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskReading {
    /// `/dev/vda`; empty when the kernel does not name it.
    pub device: String,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Bytes read.
    pub read_bytes: Option<u64>,
    /// Bytes written.
    pub write_bytes: Option<u64>,
    /// Reads.
    pub reads: Option<u64>,
    /// Writes.
    pub writes: Option<u64>,
}

/// Processes and threads of one cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskReading {
    /// Processes right in it.
    pub processes: Option<u64>,
    /// One of them.
    pub one: Option<u32>,
    /// Threads, those of children included.
    pub threads: Option<u64>,
    /// Most threads there may be; absent: unlimited.
    pub threads_max: Option<u64>,
    /// Open files of its processes ([`Depth::Full`]); absent when there are too many to count.
    pub files: Option<u64>,
    /// Those that are sockets.
    pub sockets: Option<u64>,
    /// Soft limit of open files of one of its processes.
    pub files_limit: Option<u64>,
}

/// One network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceReading {
    /// Name.
    pub name: String,
    /// Received.
    pub received: InterfaceCounters,
    /// Sent.
    pub sent: InterfaceCounters,
}

/// One direction of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Errors.
    pub errors: u64,
    /// Packets that were dropped.
    pub dropped: u64,
}

/// A file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsReading {
    /// Size.
    pub total_bytes: u64,
    /// Free.
    pub free_bytes: u64,
    /// Free for ordinary users.
    pub available_bytes: u64,
    /// Inodes; 0 where none are counted.
    pub inodes: u64,
    /// Free inodes.
    pub inodes_free: u64,
}

/// What files take on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// Blocks in bytes.
    pub bytes: u64,
    /// Entries, hard links once.
    pub inodes: u64,
}

impl DiskUse {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), inodes: self.inodes.saturating_add(other.inodes) }
    }
}

/// A disk that is mounted on the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountedDisk {
    /// `/dev/vda1`.
    pub device: String,
    /// Room on it.
    pub fs: FsReading,
    /// Traffic.
    pub traffic: Option<DiskTraffic>,
}

/// One line of `/proc/diskstats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskTraffic {
    /// Reads that ended.
    pub reads: u64,
    /// Reads that were merged.
    pub reads_merged: u64,
    /// Sectors read.
    pub sectors_read: u64,
    /// Time in reads, in milliseconds.
    pub read_ms: u64,
    /// Writes that ended.
    pub writes: u64,
    /// Writes that were merged.
    pub writes_merged: u64,
    /// Sectors written.
    pub sectors_written: u64,
    /// Time in writes, in milliseconds.
    pub write_ms: u64,
    /// I/O under way.
    pub in_flight: u64,
    /// Time with I/O under way, in milliseconds.
    pub io_ms: u64,
    /// The same, weighted by what was under way.
    pub weighted_ms: u64,
}

/// The machine, as far as it does not change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineReading {
    /// Boot.
    pub booted: Timestamp,
    /// Memory.
    pub memory_bytes: u64,
    /// Swap.
    pub swap_bytes: u64,
    /// Logical processors.
    pub cpus: u32,
    /// Cores; absent when the kernel does not tell.
    pub cores: Option<u32>,
    /// Sockets; absent when the kernel does not tell.
    pub sockets: Option<u32>,
    /// `/etc/machine-id`.
    pub machine_id: String,
    /// Of the firmware.
    pub system_uuid: String,
    /// Of this boot.
    pub boot_id: String,
    /// Kernel release.
    pub kernel_version: String,
    /// `PRETTY_NAME` of os-release.
    pub os_image: String,
}
