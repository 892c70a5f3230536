//! Memory that the kernel keeps for pods, and from where on it slows them down: the gate MemoryQoS (node-and-resources 1.9).

use model::core::{Container, Pod};
use model::resources::{self, CgroupValues, MEMORY, QosClass};

use crate::{HostFacts, MemoryQos};

/// Memory that is never taken away.
const MIN: &str = "memory.min";
/// Memory that is taken away last.
const LOW: &str = "memory.low";
/// From here on whoever takes more has to wait.
const HIGH: &str = "memory.high";

/// What a container is given, as files of the unified hierarchy with their values.
pub(crate) fn container(
    pod: &Pod,
    container: &Container,
    node: &HostFacts,
    rules: MemoryQos,
) -> Vec<(&'static str, i64)> {
    let amount = |q: Option<model::quantity::Quantity>| q.map_or(0, |q| q.value());
    let request = amount(resources::request(container, MEMORY));
    let limit = amount(resources::limit(container, MEMORY));
    let mut out = match rules.tiered && request != 0 {
        true if resources::qos_class(pod) == QosClass::Guaranteed => vec![(MIN, request)],
        true => vec![(LOW, request)],
        // What another policy left is taken back.
        false => vec![(MIN, 0), (LOW, 0)],
    };
    if request != limit {
        let most = if limit == 0 { node.memory_allocatable_bytes } else { limit };
        out.extend(high(request, most, node.page_bytes, rules.throttling_factor).map(|bytes| (HIGH, bytes)));
    }
    out
}

/// `memory.high` in whole pages; `None` where it would be below the request.
fn high(request: i64, most: i64, page_bytes: i64, factor: f64) -> Option<i64> {
    if most <= 0 || page_bytes <= 0 {
        return None;
    }
    // In floating point, as a kubelet does it: the same factor gives the same page.
    let bytes = (request as f64 + (most as f64 - request as f64) * factor).floor() as i64;
    Some(bytes / page_bytes * page_bytes).filter(|high| *high > request)
}

/// Adds what is kept for a pod as a whole, from when its cgroup is made to its end: no resize changes it.
pub(crate) fn add_to_pod(values: &mut CgroupValues, pod: &Pod, rules: MemoryQos) {
    let request = resources::pod_requests(pod).get(MEMORY).map(|q| q.value()).filter(|bytes| *bytes > 0);
    if rules.tiered && resources::qos_class(pod) == QosClass::Guaranteed {
        values.memory_min_bytes = request;
    } else if rules.tiered {
        values.memory_low_bytes = request;
    }
}

/// Keeps for those for whom memory is set aside all that they are limited to, whatever the policy.
#[must_use]
pub fn keep_reserved(values: CgroupValues) -> CgroupValues {
    CgroupValues { memory_min_bytes: values.memory_limit_bytes, ..values }
}
