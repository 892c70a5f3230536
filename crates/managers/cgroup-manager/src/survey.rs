//! What the host offers to pods.

use cgroup_values::NodeFacts;
use cgroup_values::tree::PID;
use model::quantity::Quantity;
use model::resources::{CPU, HUGEPAGES_PREFIX, MEMORY, ResourceList};
use ports::host::{CgroupFs, CgroupVersion, HostInfo, HostResult};

/// Facts for the formulas, and capacity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Survey {
    /// Facts for the formulas.
    pub facts: NodeFacts,
    /// `cpu`, `memory`, `pid` and `hugepages-*` of the machine.
    pub capacity: ResourceList,
}

/// Looks at the host once. Blocks.
///
/// # Errors
/// A fact that the node cannot do without is unreadable.
pub fn survey(host: &dyn HostInfo, cgroups: &dyn CgroupFs) -> HostResult<Survey> {
    let memory = signed(host.memory_total_bytes()?);
    let pages = host.huge_pages()?;
    let facts = NodeFacts {
        memory_capacity_bytes: memory,
        swap_total_bytes: signed(host.swap_total_bytes()?),
        swap_controller: cgroups.has_swap_controller(),
        cgroup_v2: cgroups.version() == CgroupVersion::V2,
        page_sizes: pages.keys().copied().collect(),
    };
    let mut capacity = ResourceList::from([
        (CPU.to_owned(), Quantity::from_units(i64::from(host.cpu_count()))),
        (MEMORY.to_owned(), Quantity::from_bytes(memory)),
        (PID.to_owned(), Quantity::from_units(signed(host.pid_capacity()?))),
    ]);
    for (size, count) in pages {
        let name = format!("{HUGEPAGES_PREFIX}{}", Quantity::from_bytes(signed(size)));
        capacity.insert(name, Quantity::from_bytes(signed(size.saturating_mul(count))));
    }
    Ok(Survey { facts, capacity })
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
