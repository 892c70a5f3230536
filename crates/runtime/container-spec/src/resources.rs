//! Limits of a container in words of the specification. For cgroup v2 the OCI runtime translates, and `unified` is taken as it is.

use std::collections::HashMap;

use cri_api::v1;
use oci_spec::runtime::{LinuxCpu, LinuxHugepageLimit, LinuxMemory, LinuxResources};

use crate::facts::NodeFacts;

/// Limits, without rules for devices. Zero means "not set".
///
/// Where swap can be limited, memory and swap together get the limit of memory, so that a container does not swap unless it is
/// told to. Huge pages are left out where they cannot be limited, as containerd does (`tolerate_missing_hugetlb_controller`).
#[must_use]
pub fn linux_resources(asked: &v1::LinuxContainerResources, node: &NodeFacts) -> LinuxResources {
    let mut resources = LinuxResources::default();
    resources.set_cpu(Some(cpu(asked))).set_memory(Some(memory(asked, node.swap_controller)));
    if node.hugetlb_controller && !asked.hugepage_limits.is_empty() {
        resources.set_hugepage_limits(Some(asked.hugepage_limits.iter().map(huge).collect()));
    }
    if !asked.unified.is_empty() {
        let unified: HashMap<String, String> = asked.unified.clone().into_iter().collect();
        resources.set_unified(Some(unified));
    }
    resources
}

fn cpu(asked: &v1::LinuxContainerResources) -> LinuxCpu {
    let positive = |n: i64| u64::try_from(n).ok().filter(|n| *n != 0);
    let words = |s: &str| Some(s.to_owned()).filter(|s| !s.is_empty());
    let mut cpu = LinuxCpu::default();
    cpu.set_period(positive(asked.cpu_period))
        .set_quota(Some(asked.cpu_quota).filter(|q| *q != 0))
        .set_shares(positive(asked.cpu_shares))
        .set_cpus(words(&asked.cpuset_cpus))
        .set_mems(words(&asked.cpuset_mems));
    cpu
}

fn memory(asked: &v1::LinuxContainerResources, swap: bool) -> LinuxMemory {
    let set = |n: i64| Some(n).filter(|n| *n != 0);
    let limit = set(asked.memory_limit_in_bytes);
    let both = set(asked.memory_swap_limit_in_bytes).or(limit);
    let mut memory = LinuxMemory::default();
    memory.set_limit(limit).set_swap(both.filter(|_| swap));
    memory
}

fn huge(limit: &v1::HugepageLimit) -> LinuxHugepageLimit {
    let mut out = LinuxHugepageLimit::default();
    // Pages without limit are the greatest number that the specification has.
    out.set_page_size(limit.page_size.clone()).set_limit(i64::try_from(limit.limit).unwrap_or(i64::MAX));
    out
}
