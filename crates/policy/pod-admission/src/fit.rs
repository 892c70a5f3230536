//! Resource fit (node-and-resources 5.2, step 6).

use model::core::Pod;
use model::quantity::Quantity;
use model::resources::{self, CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY};

use crate::facts::NodeFacts;
use crate::rejection::Rejection;

/// Resource name of the number of pods.
pub(crate) const PODS: &str = "pods";

/// A resource of which the node has too little. CPU counts in thousandths of a core, all else in whole units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub name: String,
    pub requested: i64,
    pub used: i64,
    pub capacity: i64,
}

impl Shortage {
    /// What must become free.
    pub(crate) fn lacking(&self) -> i64 {
        self.requested - (self.capacity - self.used)
    }

    pub(crate) fn rejection(&self) -> Rejection {
        let Self { name, requested, used, capacity } = self;
        let text = format!(
            "Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
        );
        Rejection::new(format!("OutOf{name}"), text)
    }
}

/// What the pod requests of one resource, in the unit of [`Shortage`]; overhead included, one of `pods`.
pub(crate) fn request(pod: &Pod, name: &str) -> i64 {
    if name == PODS { 1 } else { number(name, resources::pod_requests(pod).get(name).copied().unwrap_or_default()) }
}

fn number(name: &str, q: Quantity) -> i64 {
    if name == CPU { q.milli_value() } else { q.value() }
}

/// Everything that is too little, in the order in which it is reported: pods, cpu, memory, ephemeral-storage, the rest by
/// name. A request of zero is never too much; extended resources that the node does not know are the cluster's business.
pub(crate) fn shortages<'a>(
    pod: &Pod,
    active: impl Iterator<Item = &'a Pod> + Clone,
    node: &NodeFacts,
) -> Vec<Shortage> {
    let wanted = resources::pod_requests(pod);
    let first = [CPU, MEMORY, EPHEMERAL_STORAGE];
    let known = |name: &&str| !is_extended(name) || node.allocatable.contains_key(*name);
    let others = wanted.keys().map(String::as_str).filter(|n| is_scalar(n) && known(n));
    let names = std::iter::once(PODS).chain(first).chain(others);
    let check = |name: &str| {
        let requested = request(pod, name);
        let used = || active.clone().map(|p| request(p, name)).fold(0_i64, i64::saturating_add);
        let capacity = number(name, node.allocatable.get(name).copied().unwrap_or_default());
        if requested == 0 || requested <= capacity.saturating_sub(used()) {
            return None;
        }
        Some(Shortage { name: name.to_owned(), requested, used: used(), capacity })
    };
    names.filter_map(check).collect()
}

/// Counted beside the basic ones: extended resources, huge pages, attachable volumes.
fn is_scalar(name: &str) -> bool {
    name.contains('/') || name.starts_with(HUGEPAGES_PREFIX) || name.starts_with("attachable-volumes-")
}

/// Outside of the kubernetes.io domain.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}
