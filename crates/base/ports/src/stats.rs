//! Counters of the kernel: cgroups, network, disks.
//!
//! All calls block, read only, and answer with what the kernel says now. What is not there is absent (`None`, empty), as
//! pods come and go while they are read; only what a node cannot be without is an error.

use std::path::Path;

use model::reading::{CgroupReading, Depth, DiskUse, FsReading, InterfaceReading, MachineReading, MountedDisk};

use crate::host::HostResult;

/// Reads counters. Cgroup paths are those below the mount point (`/kubepods/burstable`, `/` for the root); paths with `..`
/// are as good as absent.
pub trait StatsSource: Send + Sync + 'static {
    /// One cgroup; `None` when it is not there.
    fn cgroup(&self, path: &str, depth: Depth) -> Option<CgroupReading>;
    /// Cgroup of a container below its pod's, under one of the names that runtimes give; `None` when there is none.
    fn container_cgroup(&self, pod_cgroup: &str, container_id: &str) -> Option<String>;
    /// A process of a cgroup, its own or of a child; `None` when it is empty.
    fn any_process(&self, path: &str) -> Option<u32>;
    /// Cgroup of this very process, when it has one of its own.
    fn own_cgroup(&self) -> Option<String>;
    /// Interfaces of the network namespace of a process (`None`: this one), in the kernel's order, without loopback and
    /// the host's ends of containers. `None` also where a process is in that of this one: of a pod that tells nothing.
    fn network(&self, process: Option<u32>) -> Option<Vec<InterfaceReading>>;
    /// The file system that holds a path.
    fn fs(&self, path: &Path) -> HostResult<FsReading>;
    /// Bytes of a block device, without opening it.
    ///
    /// # Errors
    /// It is not there, or no block device.
    fn device_size(&self, path: &Path) -> HostResult<u64>;
    /// Regular files right in a directory; `None` when there is no such directory.
    fn files_in(&self, dir: &Path) -> Option<DiskUse>;
    /// One file; `None` when there is none.
    fn file(&self, path: &Path) -> Option<DiskUse>;
    /// Everything below a directory, the directory included, on its own file system; no link is followed, a file with
    /// several names counts once. `None` when there is no such directory or it has more than `max_entries` entries.
    fn tree(&self, dir: &Path, max_entries: u64) -> Option<DiskUse>;
    /// Disks that are mounted, each once.
    fn disks(&self) -> Vec<MountedDisk>;
    /// Processes and threads there are, and the most there can be.
    fn processes(&self) -> HostResult<(u64, u64)>;
    /// The machine.
    fn machine(&self) -> HostResult<MachineReading>;
}
