//! Resources as the CRI carries them, for containers and sandboxes (node-and-resources 1.7, 1.10; interfaces 7.4).

use cri_api::v1::{HugepageLimit, LinuxContainerResources};
use model::cgroup::page_size_name;
use model::core::{Container, Pod};
use model::node::SwapBehavior;
use model::pod;
use model::quantity::Quantity;
use model::resources::{self, CPU, CgroupValues, HUGEPAGES_PREFIX, MEMORY, QosClass};

use crate::{HostFacts, LimitRules, cpu, memory_qos, oom, tree};

/// Resources of a container: its own, else the pod-level limit where it has none.
#[must_use]
pub fn container_resources(
    pod: &Pod,
    container: &Container,
    node: &HostFacts,
    rules: &LimitRules,
) -> LinuxContainerResources {
    let limit = |name| resources::limit(container, name).or_else(|| resources::pod_level_limit(pod, name));
    let amounts =
        Amounts { cpu_request: resources::request(container, CPU), cpu_limit: limit(CPU), memory_limit: limit(MEMORY) };
    let mut out = linux_resources(&amounts, node, rules);
    out.oom_score_adj = oom::score_adj(pod, container, node.memory_capacity_bytes);
    out.hugepage_limits = hugepage_limits(pod, container, node);
    add_swap(&mut out, pod, container, (node, rules));
    if let Some(rules) = rules.memory_qos {
        let files = memory_qos::container(pod, container, node, rules);
        out.unified.extend(files.into_iter().map(|(file, bytes)| (file.to_owned(), bytes.to_string())));
    }
    out
}

/// Resources of the whole pod, overhead left out, as the sandbox is told.
#[must_use]
pub fn sandbox_resources(pod: &Pod, node: &HostFacts, rules: &LimitRules) -> LinuxContainerResources {
    let requests = resources::pod_requests_without_overhead(pod);
    let limits = resources::pod_limits_without_overhead(pod);
    let amounts = Amounts {
        cpu_request: requests.get(CPU).copied(),
        cpu_limit: limits.get(CPU).copied(),
        memory_limit: limits.get(MEMORY).copied(),
    };
    linux_resources(&amounts, node, rules)
}

/// `spec.overhead` as the sandbox is told; all zero without one.
#[must_use]
pub fn sandbox_overhead(pod: &Pod, node: &HostFacts, rules: &LimitRules) -> LinuxContainerResources {
    if pod.spec.as_ref().is_none_or(|s| s.overhead.is_none()) {
        return LinuxContainerResources::default();
    }
    let overhead = resources::overhead(pod);
    let cpu = overhead.get(CPU).copied().unwrap_or_default();
    let amounts = Amounts { cpu_request: Some(cpu), cpu_limit: Some(cpu), memory_limit: overhead.get(MEMORY).copied() };
    linux_resources(&amounts, node, rules)
}

/// What the containers have together where the pod's cgroup has these values: as the sandbox is told in a resize.
#[must_use]
pub fn resized_sandbox(pod: &Pod, values: &CgroupValues, rules: &LimitRules) -> LinuxContainerResources {
    let overhead = resources::overhead(pod);
    let cpu = overhead.get(CPU).map(|q| q.milli_value());
    let signed = |n: Option<u64>| n.map_or(0, |n| i64::try_from(n).unwrap_or(i64::MAX));
    let less = |n: i64, taken: Option<i64>| if n > 0 { n.saturating_sub(taken.unwrap_or(0)).max(0) } else { n };
    let shares = cpu.map(|milli| signed(Some(cpu::shares(milli))));
    let quota = cpu.map(|milli| cpu::quota_us(milli, rules.cpu_period_us));
    LinuxContainerResources {
        cpu_shares: less(signed(values.cpu_shares), shares),
        cpu_quota: less(values.cpu_quota_us.unwrap_or(0), quota),
        cpu_period: signed(values.cpu_period_us),
        memory_limit_in_bytes: less(values.memory_limit_bytes.unwrap_or(0), overhead.get(MEMORY).map(|q| q.value())),
        ..LinuxContainerResources::default()
    }
}

struct Amounts {
    cpu_request: Option<Quantity>,
    cpu_limit: Option<Quantity>,
    memory_limit: Option<Quantity>,
}

fn linux_resources(amounts: &Amounts, node: &HostFacts, rules: &LimitRules) -> LinuxContainerResources {
    let milli = |q: Option<Quantity>| q.map_or(0, |q| q.milli_value());
    let shares = cpu::shares(milli(amounts.cpu_request.or(amounts.cpu_limit)));
    let mut out = LinuxContainerResources {
        cpu_shares: i64::try_from(shares).unwrap_or(i64::MAX),
        memory_limit_in_bytes: amounts.memory_limit.map_or(0, |q| q.value()),
        ..LinuxContainerResources::default()
    };
    if rules.cpu_quota {
        out.cpu_period = i64::try_from(rules.cpu_period_us).unwrap_or(i64::MAX);
        out.cpu_quota = cpu::quota_us(milli(amounts.cpu_limit), rules.cpu_period_us);
    }
    if node.cgroup_v2 && !rules.single_process_oom_kill {
        out.unified.insert("memory.oom.group".to_owned(), "1".to_owned());
    }
    out
}

/// One entry per page size of the node, 0 where the container asks for none.
fn hugepage_limits(pod: &Pod, container: &Container, node: &HostFacts) -> Vec<HugepageLimit> {
    let own = resources::limits(container);
    let level: Vec<(String, Quantity)> = resources::pod_limits_without_overhead(pod)
        .into_iter()
        .filter(|(k, _)| k.starts_with(HUGEPAGES_PREFIX) && resources::pod_level_limit(pod, k).is_some())
        .collect();
    let of_size = |size: u64| {
        let named = |k: &str| tree::page_size_of(k) == Some(size);
        let mine = own.iter().find(|(k, _)| named(k)).map(|(_, q)| *q);
        mine.or_else(|| level.iter().find(|(k, _)| named(k)).map(|(_, q)| *q))
    };
    let limit = |size: u64| of_size(size).map_or(0, |q| u64::try_from(q.value()).unwrap_or(0));
    node.page_sizes.iter().map(|s| HugepageLimit { page_size: page_size_name(*s), limit: limit(*s) }).collect()
}

fn add_swap(out: &mut LinuxContainerResources, pod: &Pod, container: &Container, on: (&HostFacts, &LimitRules)) {
    let (node, rules) = on;
    if !node.swap_controller {
        return;
    }
    if !node.cgroup_v2 {
        // v1 counts memory and swap together: the same number leaves no swap.
        out.memory_swap_limit_in_bytes = out.memory_limit_in_bytes;
        return;
    }
    let bytes = swap_bytes(pod, container, node, rules);
    out.unified.insert("memory.swap.max".to_owned(), bytes.to_string());
}

/// Swap that a container may use: its part of the node's swap, in proportion to its memory request, where the rules
/// allow any (node-and-resources 1.10).
#[must_use]
pub fn swap_bytes(pod: &Pod, container: &Container, node: &HostFacts, rules: &LimitRules) -> i64 {
    let request = resources::request(container, MEMORY).map_or(0, |q| q.value());
    let limit = resources::limit(container, MEMORY).map_or(0, |q| q.value());
    let allowed = rules.swap == SwapBehavior::LimitedSwap
        && node.cgroup_v2
        && resources::qos_class(pod) == QosClass::Burstable
        && !pod::is_critical(pod)
        && request > 0
        && request != limit
        && node.memory_capacity_bytes > 0;
    if !allowed {
        return 0;
    }
    let bytes = i128::from(request) * i128::from(node.swap_total_bytes) / i128::from(node.memory_capacity_bytes);
    i64::try_from(bytes).unwrap_or(0)
}
