//! Settings.

use cgroup_values::tree::Reservations;
use cgroup_values::{HostFacts, LimitRules, PodTree};
use model::resources::{CgroupValues, ResourceList};

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// `cgroupsPerQOS`. Without it pods have no cgroups of ours: every message succeeds and does nothing.
    pub enabled: bool,
    /// Names under `cgroupRoot`, as the driver spells them.
    pub tree: PodTree,
    /// The operator's rules.
    pub rules: LimitRules,
    /// Facts of the host.
    pub facts: HostFacts,
    /// `cpu`, `memory`, `pid`, `hugepages-*` of the machine.
    pub capacity: ResourceList,
    /// What is set aside.
    pub reserved: Reservations,
    /// `enforceNodeAllocatable` names `pods`.
    pub enforce_pods: bool,
    /// Cgroups that are limited to what is set aside for those in them.
    pub reserved_cgroups: Vec<ReservedCgroup>,
    /// Cgroup that the daemon puts itself into (`kubeletCgroups`); `None`: it stays where it was started.
    pub own_cgroup: Option<String>,
    /// Cgroup for processes of the system that are in the root of the tree (`systemCgroups`); `None`: they stay there.
    pub system_cgroup: Option<String>,
    /// What is mounted in memory may be swapped out: swap is on, and the kernel cannot leave such mounts out of it.
    pub memory_may_swap: bool,
    /// `oomScoreAdj` of the daemon; `None` leaves it as it is.
    pub oom_score_adj: Option<i64>,
}

/// A cgroup that the operator made, for daemons of the system or of Kubernetes. It is never made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedCgroup {
    /// `System Reserved`, `Kube Reserved Compressible`, ...
    pub what: &'static str,
    /// As the operator wrote it.
    pub name: String,
    /// Path of the cgroup, as the driver spells it.
    pub path: String,
    /// What they may take.
    pub values: CgroupValues,
}
