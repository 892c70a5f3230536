//! What counts as a change (node-and-resources 8.2).

use std::collections::BTreeMap;

use model::core::{Node, NodeCondition, NodeStatus};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use model::quantity::Quantity;

/// Whether anything but heartbeat times differs: conditions whatever their order, any other field of the status, labels
/// and annotations. Amounts are compared, not their notation; empty is absent.
///
/// Asked every few seconds, with the same answer nearly always: nothing is copied for it.
#[must_use]
pub fn changed(old: &Node, new: &Node) -> bool {
    let absent = NodeStatus::default();
    let (a, b) = (old.status.as_ref().unwrap_or(&absent), new.status.as_ref().unwrap_or(&absent));
    differ(old.metadata.labels.as_ref(), new.metadata.labels.as_ref())
        || differ(old.metadata.annotations.as_ref(), new.metadata.annotations.as_ref())
        || status_changed(a, b)
}

fn status_changed(old: &NodeStatus, new: &NodeStatus) -> bool {
    // Each field has a name here: one that is new in the API is not forgotten.
    let NodeStatus {
        addresses,
        allocatable,
        capacity,
        conditions,
        config,
        daemon_endpoints,
        declared_features,
        features,
        images,
        node_info,
        phase,
        runtime_handlers,
        volumes_attached,
        volumes_in_use,
    } = old;
    conditions_changed(conditions.as_deref().unwrap_or_default(), new.conditions.as_deref().unwrap_or_default())
        || amounts(capacity.as_ref()) != amounts(new.capacity.as_ref())
        || amounts(allocatable.as_ref()) != amounts(new.allocatable.as_ref())
        || lists_differ(addresses.as_deref(), new.addresses.as_deref())
        || lists_differ(declared_features.as_deref(), new.declared_features.as_deref())
        || lists_differ(images.as_deref(), new.images.as_deref())
        || lists_differ(runtime_handlers.as_deref(), new.runtime_handlers.as_deref())
        || lists_differ(volumes_attached.as_deref(), new.volumes_attached.as_deref())
        || lists_differ(volumes_in_use.as_deref(), new.volumes_in_use.as_deref())
        || node_info.clone().unwrap_or_default() != new.node_info.clone().unwrap_or_default()
        || (config, daemon_endpoints, features, phase)
            != (&new.config, &new.daemon_endpoints, &new.features, &new.phase)
}

fn differ(old: Option<&BTreeMap<String, String>>, new: Option<&BTreeMap<String, String>>) -> bool {
    old.into_iter().flatten().ne(new.into_iter().flatten())
}

fn lists_differ<T: PartialEq>(old: Option<&[T]>, new: Option<&[T]>) -> bool {
    old.unwrap_or_default() != new.unwrap_or_default()
}

fn conditions_changed(old: &[NodeCondition], new: &[NodeCondition]) -> bool {
    fn sorted(conditions: &[NodeCondition]) -> Vec<&NodeCondition> {
        let mut all: Vec<&NodeCondition> = conditions.iter().collect();
        all.sort_by(|a, b| a.type_.cmp(&b.type_));
        all
    }
    fn same(a: &NodeCondition, b: &NodeCondition) -> bool {
        let NodeCondition { last_heartbeat_time: _, last_transition_time, message, reason, status, type_ } = a;
        (last_transition_time, message, reason, status, type_)
            == (&b.last_transition_time, &b.message, &b.reason, &b.status, &b.type_)
    }
    let (old, new) = (sorted(old), sorted(new));
    old.len() != new.len() || old.iter().zip(&new).any(|(a, b)| !same(a, b))
}

fn amounts(list: Option<&BTreeMap<String, ApiQuantity>>) -> BTreeMap<&str, Option<Quantity>> {
    list.into_iter().flatten().map(|(k, q)| (k.as_str(), Quantity::try_from(q).ok())).collect()
}
