//! From a pod's requests and limits to the numbers and names that cgroups and the CRI take.
//!
//! Owns every formula of node-and-resources 1.1, 1.2, 1.4 to 1.11, 1.14. Never reads the host: facts and rules
//! come in as arguments. Nothing here can fail.

#![forbid(unsafe_code)]

pub mod cpu;
pub mod cri;
pub mod memory_qos;
pub mod names;
pub mod oom;
pub mod resize;
pub mod system;
pub mod tiers;
pub mod tree;

#[cfg(test)]
mod tests;

use model::node::SwapBehavior;

pub use names::{CgroupName, PodTree};

/// What the formulas need to know of the host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostFacts {
    /// Memory of the machine in bytes.
    pub memory_capacity_bytes: i64,
    /// Memory that is not set aside (`systemReserved`, `kubeReserved`), in bytes; eviction thresholds are not taken off.
    pub memory_allocatable_bytes: i64,
    /// Page size of the kernel in bytes.
    pub page_bytes: i64,
    /// Swap of the machine in bytes.
    pub swap_total_bytes: i64,
    /// Whether cgroups can limit swap (`memory.swap.max`, `memory.memsw.limit_in_bytes`).
    pub swap_controller: bool,
    /// Whether the host has the unified hierarchy.
    pub cgroup_v2: bool,
    /// Huge page sizes of the host in bytes, ascending.
    pub page_sizes: Vec<u64>,
}

/// The operator's rules for limits.
#[derive(Clone, PartialEq, Debug)]
pub struct LimitRules {
    /// `cpuCFSQuota`: enforce CPU limits. Without it pod cgroups get quota -1 and the CRI gets neither quota nor period.
    pub cpu_quota: bool,
    /// `cpuCFSQuotaPeriod` in microseconds.
    pub cpu_period_us: u64,
    /// `podPidsLimit`; not positive: no limit.
    pub pod_pids_max: Option<i64>,
    /// `singleProcessOOMKill`; on v1 it has no effect, the kernel knows no other way.
    pub single_process_oom_kill: bool,
    /// `memorySwap.swapBehavior`.
    pub swap: SwapBehavior,
    /// The gate MemoryQoS, on cgroup v2.
    pub memory_qos: Option<MemoryQos>,
    /// `qosReserved` of memory, in percent (the gate QOSReserved); `None`: lower classes may take all that there is.
    pub qos_reserved_memory: Option<i64>,
}

/// The operator's rules for memory that is kept for pods, where the gate is on and the host has cgroup v2.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MemoryQos {
    /// `memoryThrottlingFactor`: how much of what is above its request a container may take before it is slowed down.
    pub throttling_factor: f64,
    /// `memoryReservationPolicy: TieredReservation`: requests are kept. Without it nothing is.
    pub tiered: bool,
}

impl LimitRules {
    /// The rules of a node that configures nothing.
    #[must_use]
    pub const fn standard() -> Self {
        Self {
            cpu_quota: true,
            cpu_period_us: cpu::DEFAULT_PERIOD_US,
            pod_pids_max: None,
            single_process_oom_kill: false,
            swap: SwapBehavior::NoSwap,
            memory_qos: None,
            qos_reserved_memory: None,
        }
    }
}
