//! What counts as a change (node-and-resources 8.2).

use std::collections::BTreeMap;

use model::core::{Node, NodeCondition, NodeStatus};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use model::quantity::Quantity;

/// Whether anything but heartbeat times differs: conditions whatever their order, any other field of the status, labels
/// and annotations. Amounts are compared, not their notation; empty is absent.
#[must_use]
pub fn changed(old: &Node, new: &Node) -> bool {
    let maps = |n: &Node| {
        let given = |m: &Option<BTreeMap<String, String>>| m.clone().unwrap_or_default();
        (given(&n.metadata.labels), given(&n.metadata.annotations))
    };
    let status = |n: &Node| n.status.clone().unwrap_or_default();
    let (a, b) = (status(old), status(new));
    maps(old) != maps(new)
        || conditions(&a) != conditions(&b)
        || amounts(a.capacity.as_ref()) != amounts(b.capacity.as_ref())
        || amounts(a.allocatable.as_ref()) != amounts(b.allocatable.as_ref())
        || rest(a) != rest(b)
}

fn conditions(status: &NodeStatus) -> Vec<NodeCondition> {
    let mut all = status.conditions.clone().unwrap_or_default();
    for c in &mut all {
        c.last_heartbeat_time = None;
    }
    all.sort_by(|a, b| a.type_.cmp(&b.type_));
    all
}

fn amounts(list: Option<&BTreeMap<String, ApiQuantity>>) -> BTreeMap<&str, Option<Quantity>> {
    list.into_iter().flatten().map(|(k, q)| (k.as_str(), Quantity::try_from(q).ok())).collect()
}

fn rest(status: NodeStatus) -> NodeStatus {
    fn some<T>(list: Option<Vec<T>>) -> Option<Vec<T>> {
        list.filter(|l| !l.is_empty())
    }
    NodeStatus {
        conditions: None,
        capacity: None,
        allocatable: None,
        addresses: some(status.addresses),
        declared_features: some(status.declared_features),
        images: some(status.images),
        runtime_handlers: some(status.runtime_handlers),
        volumes_attached: some(status.volumes_attached),
        volumes_in_use: some(status.volumes_in_use),
        node_info: Some(status.node_info.unwrap_or_default()),
        ..status
    }
}
