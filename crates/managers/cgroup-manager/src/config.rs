//! Settings.

use cgroup_values::tree::Reservations;
use cgroup_values::{HostFacts, LimitRules, PodTree};
use model::resources::ResourceList;

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
    /// `oomScoreAdj` of the daemon; `None` leaves it as it is.
    pub oom_score_adj: Option<i64>,
}
