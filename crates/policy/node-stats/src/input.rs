//! What a gathering has read.

use std::sync::Arc;

use model::Timestamp;
use model::reading::{CgroupReading, DiskUse, FsReading, InterfaceReading, MachineReading};
use model::stats::{PodReference, VolumeStats};

/// The machine.
#[derive(Clone, Debug, Default)]
pub struct NodeReadings {
    /// Name of the Node.
    pub name: String,
    /// When the gathering read files.
    pub at: Timestamp,
    /// What does not change.
    pub machine: Arc<MachineReading>,
    /// The root cgroup.
    pub root: CgroupReading,
    /// Cgroups of the system that are known.
    pub systems: Vec<SystemReading>,
    /// Interfaces; not asked for with only processor and memory.
    pub network: Option<Vec<InterfaceReading>>,
    /// Disks and processes; not asked for with only processor and memory.
    pub disks: Option<NodeDisks>,
}

/// One cgroup of the system.
#[derive(Clone, Debug, Default)]
pub struct SystemReading {
    /// `kubelet`, `runtime`, `misc` or `pods`.
    pub name: &'static str,
    /// Path of its cgroup.
    pub path: String,
    /// What it uses.
    pub reading: CgroupReading,
}

/// Disks and processes of the machine.
#[derive(Clone, Debug, Default)]
pub struct NodeDisks {
    /// The file system of the root directory.
    pub root: FsReading,
    /// Images.
    pub images: RuntimeFs,
    /// Writable layers, where they are apart.
    pub containers: Option<RuntimeFs>,
    /// Processes and threads there are, and the most there can be.
    pub processes: (u64, u64),
}

/// A file system of the runtime.
#[derive(Clone, Debug, Default)]
pub struct RuntimeFs {
    /// When the runtime measured it.
    pub at: Timestamp,
    /// Room on it; `None`: its mount point cannot be looked at.
    pub fs: Option<FsReading>,
    /// What the runtime uses of it, as it says: bytes and inodes.
    pub used: (Option<u64>, Option<u64>),
}

/// One pod with at least one container that runs.
#[derive(Clone, Debug, Default)]
pub struct PodReadings {
    /// Which.
    pub reference: PodReference,
    /// Creation of its sandbox.
    pub started: Timestamp,
    /// Path and content of its cgroup.
    pub cgroup: Option<(String, CgroupReading)>,
    /// Interfaces of its sandbox; `None` for pods in the host's network, and when nobody asked.
    pub network: Option<Vec<InterfaceReading>>,
    /// Its containers.
    pub containers: Vec<ContainerReadings>,
    /// Files right in its log directory.
    pub log_files: Option<DiskUse>,
    /// Its `etc-hosts`.
    pub hosts_file: Option<DiskUse>,
    /// Its volumes, as last measured.
    pub volumes: Arc<[MeasuredVolume]>,
}

/// One container.
#[derive(Clone, Debug, Default)]
pub struct ContainerReadings {
    /// Name in the pod.
    pub name: String,
    /// Id.
    pub id: String,
    /// When it was created.
    pub created: Timestamp,
    /// Path and content of its cgroup.
    pub cgroup: Option<(String, CgroupReading)>,
    /// Log files.
    pub logs: Option<DiskUse>,
}

/// A volume as it was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredVolume {
    /// What the answer says of it.
    pub stats: VolumeStats,
    /// It counts against `ephemeral-storage`: an `emptyDir` on disk, a `configMap`.
    pub is_local: bool,
}
