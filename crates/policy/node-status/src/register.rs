//! A new Node, and what is put right on one that exists (node-and-resources 8.1).

use std::collections::BTreeMap;

use model::Timestamp;
use model::core::{Node, NodeSpec, NodeStatus, Taint};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::quantity::Quantity;
use model::resources::HUGEPAGES_PREFIX;

use crate::facts::{Facts, Plan};
use crate::setters::{is_extended, updated};

/// Tells the attach-detach controller that volumes of this node are its business.
const ATTACH_DETACH: &str = "volumes.kubernetes.io/controller-managed-attach-detach";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const NO_SCHEDULE: &str = "NoSchedule";

/// The labels that a node keeps right on its own object.
const OWN_LABELS: [&str; 12] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "node.kubernetes.io/windows-build",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];

/// The Node to create: labels, taints, annotation, provider id and a complete status.
#[must_use]
pub fn initial(plan: &Plan, facts: &Facts, now: Timestamp) -> Node {
    let text = |k: &str, v: &str| (k.to_owned(), v.to_owned());
    let mut labels = BTreeMap::from([
        text("kubernetes.io/hostname", &plan.hostname),
        text("kubernetes.io/os", "linux"),
        text("kubernetes.io/arch", &plan.arch),
        text("beta.kubernetes.io/os", "linux"),
        text("beta.kubernetes.io/arch", &plan.arch),
    ]);
    labels.extend(plan.labels.clone());
    let taints = taints(plan);
    let node = Node {
        metadata: ObjectMeta {
            name: Some(plan.name.clone()),
            labels: Some(labels),
            annotations: plan.controller_attach_detach.then(|| BTreeMap::from([text(ATTACH_DETACH, "true")])),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            taints: (!taints.is_empty()).then_some(taints),
            unschedulable: plan.unschedulable.then_some(true),
            provider_id: plan.provider_id.clone().filter(|id| !id.is_empty()),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus::default()),
    };
    updated(plan, &node, facts, now).0
}

fn taints(plan: &Plan) -> Vec<Taint> {
    let mut taints = plan.taints.clone();
    let blocks = |key: &str, value: Option<&str>| Taint {
        key: key.to_owned(),
        value: value.map(str::to_owned),
        effect: NO_SCHEDULE.to_owned(),
        ..Taint::default()
    };
    let there = taints.iter().any(|t| t.key == UNSCHEDULABLE && t.effect == NO_SCHEDULE);
    if plan.unschedulable && !there {
        taints.push(blocks(UNSCHEDULABLE, None));
    }
    if plan.external_cloud {
        taints.push(blocks(UNINITIALIZED, Some("true")));
    }
    taints
}

/// The existing Node with what registration puts right: the annotation, the own labels, huge pages, stale extended
/// resources, and resources where there are none. Taints, other labels, `unschedulable` and the provider id stay as they
/// are. Equal to `existing`: nothing to do.
#[must_use]
pub fn reconciled(existing: &Node, wanted: &Node) -> Node {
    let mut node = without_devices(existing);
    annotation(&mut node, wanted);
    own_labels(&mut node, wanted);
    let status = node.status.get_or_insert_default();
    let wanted = wanted.status.as_ref();
    let lists = [
        (&mut status.capacity, wanted.and_then(|s| s.capacity.as_ref())),
        (&mut status.allocatable, wanted.and_then(|s| s.allocatable.as_ref())),
    ];
    for (list, wanted) in lists {
        let Some(wanted) = wanted else { continue };
        let list = list.get_or_insert_with(|| wanted.clone());
        list.retain(|k, _| !k.starts_with(HUGEPAGES_PREFIX) || wanted.contains_key(k));
        for (k, q) in wanted.iter().filter(|(k, _)| k.starts_with(HUGEPAGES_PREFIX)) {
            set(list.entry(k.clone()).or_default(), q);
        }
    }
    if node.status == Some(NodeStatus::default()) && existing.status.is_none() {
        node.status = None;
    }
    node
}

/// The Node without extended resources to give. Whatever it advertises was found by device plugins of whoever ran here
/// before: there is no device manager that could hand one of these devices to a container. What is advertised after the
/// registration is the cluster's own business.
#[must_use]
pub fn without_devices(existing: &Node) -> Node {
    let mut node = existing.clone();
    let status = node.status.iter_mut();
    for list in status.flat_map(|s| [&mut s.capacity, &mut s.allocatable]).flatten() {
        for (_, q) in list.iter_mut().filter(|(k, _)| is_extended(k)) {
            set(q, &ApiQuantity("0".to_owned()));
        }
    }
    node
}

/// Sets unless the amount is the same in another notation.
fn set(old: &mut ApiQuantity, new: &ApiQuantity) {
    let same = match (Quantity::try_from(&*old), Quantity::try_from(new)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    };
    if !same {
        *old = new.clone();
    }
}

fn annotation(node: &mut Node, wanted: &Node) {
    let value = wanted.metadata.annotations.as_ref().and_then(|a| a.get(ATTACH_DETACH));
    let annotations = &mut node.metadata.annotations;
    match value {
        Some(v) => {
            annotations.get_or_insert_default().insert(ATTACH_DETACH.to_owned(), v.clone());
        }
        None => {
            if let Some(all) = annotations {
                all.remove(ATTACH_DETACH);
            }
        }
    }
}

/// A label that the new object does not have is left alone; an empty one is taken away.
fn own_labels(node: &mut Node, wanted: &Node) {
    let Some(wanted) = &wanted.metadata.labels else { return };
    for key in OWN_LABELS {
        let Some(value) = wanted.get(key) else { continue };
        let labels = node.metadata.labels.get_or_insert_default();
        if value.is_empty() {
            labels.remove(key);
        } else {
            labels.insert(key.to_owned(), value.clone());
        }
    }
}
