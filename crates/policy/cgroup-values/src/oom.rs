//! Who the kernel kills first when memory is gone (node-and-resources 1.14).

use model::core::{Container, Pod};
use model::pod;
use model::resources::{self, MEMORY, QosClass};

/// Value for Guaranteed and node-critical pods.
pub const GUARANTEED: i64 = -997;
/// Value for BestEffort pods.
pub const BEST_EFFORT: i64 = 1000;
/// Value that the node daemon wants for itself unless configured otherwise.
pub const NODE_DAEMON: i64 = -999;

const NODE_CRITICAL_CLASS: &str = "system-node-critical";

/// `oom_score_adj` of a container.
#[must_use]
pub fn score_adj(pod: &Pod, container: &Container, memory_capacity_bytes: i64) -> i64 {
    let class = pod.spec.as_ref().and_then(|s| s.priority_class_name.as_deref());
    if pod::is_critical(pod) && class == Some(NODE_CRITICAL_CLASS) {
        return GUARANTEED;
    }
    match resources::qos_class(pod) {
        QosClass::Guaranteed => return GUARANTEED,
        QosClass::BestEffort => return BEST_EFFORT,
        QosClass::Burstable => {}
    }
    let share = share_of_pod_level_rest(pod);
    let own = memory_request(container);
    let request = if is_sidecar_of(pod, container) { own.max(least_regular_request(pod)) } else { own };
    let adj = BEST_EFFORT - scaled(request.saturating_add(share), memory_capacity_bytes);
    // Never below what a Guaranteed pod at full memory can score, never as easy a victim as BestEffort.
    adj.clamp(BEST_EFFORT + GUARANTEED, BEST_EFFORT - 1)
}

fn scaled(request: i64, capacity: i64) -> i64 {
    if capacity <= 0 {
        return 0;
    }
    i64::try_from(1000 * i128::from(request) / i128::from(capacity)).unwrap_or(i64::MAX)
}

fn memory_request(c: &Container) -> i64 {
    resources::request(c, MEMORY).map_or(0, |q| q.value())
}

fn is_sidecar_of(pod: &Pod, container: &Container) -> bool {
    pod::init_containers(pod).iter().any(|c| c.name == container.name && pod::is_sidecar(c))
}

/// A sidecar must outlive the containers that it serves: it counts with at least the smallest regular request.
fn least_regular_request(pod: &Pod) -> i64 {
    pod::regular_containers(pod).iter().map(memory_request).min().unwrap_or(0)
}

/// Each container's part of the pod-level memory request that no container claims.
fn share_of_pod_level_rest(pod: &Pod) -> i64 {
    let Some(level) = resources::pod_level_request(pod, MEMORY) else { return 0 };
    let claimed = resources::container_requests(pod).get(MEMORY).map_or(0, |q| q.value());
    let n = pod::init_containers(pod).len() + pod::regular_containers(pod).len();
    let rest = level.value().saturating_sub(claimed).max(0);
    i64::try_from(n).ok().filter(|n| *n > 0).map_or(0, |n| rest / n)
}
