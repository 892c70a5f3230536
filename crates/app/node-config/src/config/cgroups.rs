//! Cgroups, and the limits of pods in them.

use std::collections::BTreeMap;
use std::time::Duration;

use model::node::{CgroupDriver, SwapBehavior};
use model::quantity::Quantity;

/// One entry of `enforceNodeAllocatable`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Enforce {
    /// Limit all pods together.
    Pods,
    /// Limit the cgroup of system daemons.
    SystemReserved,
    /// Limit the cgroup of Kubernetes daemons.
    KubeReserved,
    /// As `SystemReserved`, CPU only.
    SystemReservedCompressible,
    /// As `KubeReserved`, CPU only.
    KubeReservedCompressible,
}

/// Resources set aside, by name (`cpu`, `memory`, `ephemeral-storage`, `pid`).
pub type Reserved = BTreeMap<String, Quantity>;

/// How cgroups are named and made, and which hosts are refused for theirs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cgroups {
    /// Driver to use when the runtime does not name its own.
    pub driver: CgroupDriver,
    /// Cgroup below which pods live; empty: the root.
    pub root: String,
    /// Whether there are QoS and pod cgroups.
    pub per_qos: bool,
    /// Refuse to start while swap is on.
    pub fail_swap_on: bool,
    /// Refuse to start on cgroup v1.
    pub fail_cgroup_v1: bool,
    /// Cgroup that this daemon puts itself into; empty: it stays where it was started.
    pub own: String,
    /// Cgroup that processes are moved into which are in the root of the tree; empty: they stay there.
    pub system: String,
    /// `oom_score_adj` of this daemon.
    pub oom_score_adj: i32,
}

impl Default for Cgroups {
    fn default() -> Self {
        Self {
            driver: CgroupDriver::Cgroupfs,
            root: String::new(),
            per_qos: true,
            fail_swap_on: true,
            fail_cgroup_v1: true,
            own: String::new(),
            system: String::new(),
            oom_score_adj: -999,
        }
    }
}

/// What is set aside before pods get anything, and where that is enforced.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeAllocatable {
    /// Where node allocatable is enforced; empty: nowhere.
    pub enforce: Vec<Enforce>,
    /// Set aside for system daemons.
    pub system_reserved: Reserved,
    /// Set aside for Kubernetes daemons.
    pub kube_reserved: Reserved,
    /// Cgroup of system daemons; empty: none.
    pub system_reserved_cgroup: String,
    /// Cgroup of Kubernetes daemons; empty: none.
    pub kube_reserved_cgroup: String,
}

impl Default for NodeAllocatable {
    fn default() -> Self {
        Self {
            enforce: vec![Enforce::Pods],
            system_reserved: Reserved::new(),
            kube_reserved: Reserved::new(),
            system_reserved_cgroup: String::new(),
            kube_reserved_cgroup: String::new(),
        }
    }
}

/// How resource numbers of pods become limits.
#[derive(Clone, PartialEq, Debug)]
pub struct PodLimits {
    /// Whether CPU limits become CFS quotas.
    pub cpu_cfs_quota: bool,
    /// CFS period.
    pub cpu_cfs_quota_period: Duration,
    /// Most processes in a pod; `None`: no limit.
    pub pod_pids_limit: Option<u64>,
    /// Kill one process on OOM, not the container; `None`: as the cgroup version has it (v1 yes, v2 no).
    pub single_process_oom_kill: Option<bool>,
    /// What pods may do with swap.
    pub swap_behavior: SwapBehavior,
    /// What the kernel keeps for pods, and when it slows them down; `None`: the gate MemoryQoS is off.
    pub memory_qos: Option<MemoryQos>,
    /// So many percent of the memory that a QoS class requests is kept from lower ones; `None`: none is.
    pub qos_reserved_memory: Option<i64>,
}

/// Settings of the gate MemoryQoS.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MemoryQos {
    /// How much of what is above its request a container may take before it is slowed down.
    pub throttling_factor: f64,
    /// Requests are kept (`memoryReservationPolicy: TieredReservation`).
    pub tiered_reservation: bool,
}

impl Default for PodLimits {
    fn default() -> Self {
        Self {
            cpu_cfs_quota: true,
            cpu_cfs_quota_period: Duration::from_millis(100),
            pod_pids_limit: None,
            single_process_oom_kill: None,
            swap_behavior: SwapBehavior::NoSwap,
            memory_qos: None,
            qos_reserved_memory: None,
        }
    }
}
