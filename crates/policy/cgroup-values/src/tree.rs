//! Values of the cgroups that the node itself writes: `kubepods`, those for whom something is set aside, and the pods.

use std::collections::BTreeMap;

use model::cgroup::MIN_SHARES;
use model::core::Pod;
use model::quantity::Quantity;
use model::resources::{self, CPU, CgroupValues, HUGEPAGES_PREFIX, MEMORY, QosClass, ResourceList};

use crate::{HostFacts, LimitRules, cpu, memory_qos};

/// Resource name of process ids in reservations and capacity.
pub const PID: &str = "pid";

/// Values of a pod's cgroup (node-and-resources 1.7).
#[must_use]
pub fn pod_values(pod: &Pod, node: &HostFacts, rules: &LimitRules) -> CgroupValues {
    let requests = resources::pod_requests(pod);
    let limits = resources::pod_limits(pod);
    let qos = resources::qos_class(pod);
    let mut values = CgroupValues {
        pids_max: rules.pod_pids_max.filter(|n| *n > 0),
        hugetlb_bytes: hugetlb(&requests, node),
        ..CgroupValues::default()
    };
    if let Some(rules) = rules.memory_qos {
        memory_qos::add_to_pod(&mut values, pod, rules);
    }
    if qos == QosClass::BestEffort {
        values.cpu_shares = Some(MIN_SHARES);
        return values;
    }
    values.cpu_shares = Some(cpu::shares(milli(&requests, CPU)));
    if qos == QosClass::Guaranteed || resources::every_container_limits(pod, CPU) {
        let period = rules.cpu_period_us;
        let quota = cpu::quota_us(milli(&limits, CPU), period);
        values.cpu_period_us = Some(period);
        values.cpu_quota_us = Some(if rules.cpu_quota { quota } else { -1 }).filter(|q| *q != 0);
    }
    if qos == QosClass::Guaranteed || resources::every_container_limits(pod, MEMORY) {
        values.memory_limit_bytes = limits.get(MEMORY).map(|q| q.value()).filter(|b| *b > 0);
    }
    values
}

/// Values that an orphaned pod cgroup keeps while its volumes are still mounted: as little CPU as there is.
#[must_use]
pub fn orphan_values() -> CgroupValues {
    CgroupValues { cpu_shares: Some(MIN_SHARES), ..CgroupValues::default() }
}

/// What the node sets aside (node-and-resources 1.11).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reservations {
    /// `systemReserved`.
    pub system: ResourceList,
    /// `kubeReserved`.
    pub kube: ResourceList,
    /// Hard eviction thresholds, resolved to amounts: `memory` and `ephemeral-storage` only.
    pub eviction_hard: ResourceList,
}

/// Values of `kubepods`: capacity less what is reserved when `enforce` (`pods` in `enforceNodeAllocatable`), else the
/// whole capacity. The eviction threshold is not taken off, so eviction can act before the kernel does.
#[must_use]
pub fn kubepods_values(capacity: &ResourceList, reserved: &Reservations, enforce: bool) -> CgroupValues {
    let left = |name: &str| -> Option<Quantity> {
        let all = *capacity.get(name)?;
        let zero = Quantity::ZERO;
        let taken = if enforce { sum(name, &[&reserved.system, &reserved.kube]) } else { zero };
        Some(all.minus(taken).or_zero())
    };
    CgroupValues {
        cpu_shares: left(CPU).map(|q| cpu::shares(q.milli_value())),
        memory_limit_bytes: left(MEMORY).map(|q| q.value()),
        pids_max: left(PID).map(|q| q.value()),
        hugetlb_bytes: page_sizes_in(capacity).filter_map(|(k, size)| Some((size, unsigned(left(k)?)))).collect(),
        ..CgroupValues::default()
    }
}

/// Values of the cgroup of those for whom `reserved` is set aside. `compressible`: of the processor alone.
#[must_use]
pub fn reserved_values(reserved: &ResourceList, compressible: bool) -> CgroupValues {
    let cpu_shares = reserved.get(CPU).map(|q| cpu::shares(q.milli_value()));
    if compressible {
        return CgroupValues { cpu_shares, ..CgroupValues::default() };
    }
    CgroupValues {
        cpu_shares,
        memory_limit_bytes: reserved.get(MEMORY).map(|q| q.value()),
        pids_max: reserved.get(PID).map(|q| q.value()),
        hugetlb_bytes: page_sizes_in(reserved)
            .filter_map(|(k, size)| Some((size, unsigned(*reserved.get(k)?))))
            .collect(),
        ..CgroupValues::default()
    }
}

/// Memory that is not set aside, in bytes: what pods may take before the node evicts any.
#[must_use]
pub fn memory_for_pods(capacity: &ResourceList, reserved: &Reservations) -> i64 {
    kubepods_values(capacity, reserved, true).memory_limit_bytes.unwrap_or(0)
}

/// What pods may use: capacity less reservations and hard eviction thresholds, and no memory that is huge pages.
#[must_use]
pub fn allocatable(capacity: &ResourceList, reserved: &Reservations) -> ResourceList {
    let lists = [&reserved.system, &reserved.kube, &reserved.eviction_hard];
    let mut out: ResourceList =
        capacity.iter().map(|(name, all)| (name.clone(), all.minus(sum(name, &lists)).or_zero())).collect();
    let pages =
        page_sizes_in(capacity).filter_map(|(k, _)| capacity.get(k)).copied().fold(Quantity::ZERO, Quantity::plus);
    if let Some(memory) = out.get_mut(MEMORY) {
        *memory = memory.minus(pages).or_zero();
    }
    out
}

fn page_sizes_in(list: &ResourceList) -> impl Iterator<Item = (&str, u64)> {
    list.keys().filter_map(|k| Some((k.as_str(), page_size_of(k)?)))
}

/// Page size in bytes that a resource name `hugepages-2Mi` carries.
pub(crate) fn page_size_of(resource: &str) -> Option<u64> {
    let size: Quantity = resource.strip_prefix(HUGEPAGES_PREFIX)?.parse().ok()?;
    u64::try_from(size.value()).ok().filter(|s| *s > 0)
}

/// Every page size of the node gets a limit: what the pod requests, else 0.
fn hugetlb(requests: &ResourceList, node: &HostFacts) -> BTreeMap<u64, u64> {
    let mut limits: BTreeMap<u64, u64> = node.page_sizes.iter().map(|s| (*s, 0)).collect();
    for (name, size) in page_sizes_in(requests) {
        limits.insert(size, requests.get(name).copied().map_or(0, unsigned));
    }
    limits
}

fn unsigned(q: Quantity) -> u64 {
    u64::try_from(q.value()).unwrap_or(0)
}

pub(crate) fn milli(list: &ResourceList, name: &str) -> i64 {
    list.get(name).map_or(0, |q| q.milli_value())
}

fn sum(name: &str, lists: &[&ResourceList]) -> Quantity {
    lists.iter().filter_map(|l| l.get(name)).copied().fold(Quantity::ZERO, Quantity::plus)
}
