//! From facts to the fields of the Node (node-and-resources 8.3).

use std::collections::BTreeMap;

use model::Timestamp;
use model::core::{
    ContainerImage, DaemonEndpoint, Node, NodeAddress, NodeDaemonEndpoints, NodeFeatures, NodeStatus, NodeSwapStatus,
};
use model::event::{EventObject, EventType, NodeEvent};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use model::quantity::Quantity;
use model::resources::{CPU, MEMORY};

use crate::conditions;
use crate::facts::{Facts, Image, Machine, Plan};

/// Addresses that `--node-ip` names, for the cloud controller.
const PROVIDED_IP: &str = "alpha.kubernetes.io/provided-node-ip";
/// Most names of one image that are reported.
const MAX_NAMES: usize = 5;

/// The Node as it should be by what was seen, with the events that tell of the changes. The spec is never touched.
#[must_use]
pub fn updated(plan: &Plan, old: &Node, facts: &Facts, now: Timestamp) -> (Node, Vec<NodeEvent>) {
    let mut node = old.clone();
    let mut events = Vec::new();
    for (key, value) in [("kubernetes.io/os", "linux"), ("kubernetes.io/arch", plan.arch.as_str())] {
        node.metadata.labels.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    }
    provided_ip(plan, &mut node);
    let status = node.status.get_or_insert_default();
    addresses(plan, status, facts);
    machine(plan, status, facts, &mut events);
    versions(plan, status, facts);
    status.daemon_endpoints = Some(NodeDaemonEndpoints { kubelet_endpoint: Some(DaemonEndpoint { port: plan.port }) });
    status.images = images(plan, facts.images.as_deref().unwrap_or_default());
    if let Some(handlers) = &facts.runtime_handlers {
        let mut handlers = handlers.clone();
        handlers.sort_by(|a, b| a.name.cmp(&b.name));
        status.runtime_handlers = (!handlers.is_empty()).then_some(handlers);
        let features = |policy| NodeFeatures { supplemental_groups_policy: Some(policy) };
        status.features = facts.supplemental_groups_policy.map(features);
    }
    status.declared_features = plan.declared_features.clone().filter(|f| !f.is_empty());
    conditions::set(plan, status, facts, now, &mut events);
    if let Some(names) = &facts.volumes_in_use {
        status.volumes_in_use = Some(names.clone()).filter(|n| !n.is_empty());
    }
    (node, events)
}

/// Networks of the node's pods, separated by commas: those that the cluster gave it, else the configured ones (`podCIDR`).
/// Empty: nobody has said.
#[must_use]
pub fn pod_networks(node: Option<&Node>, configured: &str) -> String {
    let given = node.and_then(|n| n.spec.as_ref()?.pod_cidrs.as_deref()).unwrap_or_default();
    if given.is_empty() { configured.to_owned() } else { given.join(",") }
}

/// Outside of the kubernetes.io domain.
pub(crate) fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

fn provided_ip(plan: &Plan, node: &mut Node) {
    let given: Vec<String> = plan.node_ips.iter().filter(|ip| !ip.is_unspecified()).map(ToString::to_string).collect();
    let annotations = &mut node.metadata.annotations;
    if plan.external_cloud && !given.is_empty() {
        annotations.get_or_insert_default().insert(PROVIDED_IP.to_owned(), given.join(","));
    } else if let Some(all) = annotations {
        all.remove(PROVIDED_IP);
    }
}

/// What cannot be found stays as it was. A cloud controller's addresses are its own; until it sets them, a node without
/// `--node-ip` has a name only.
fn addresses(plan: &Plan, status: &mut NodeStatus, facts: &Facts) {
    let there = status.addresses.as_ref().is_some_and(|a| !a.is_empty());
    if plan.external_cloud && there {
        return;
    }
    let address = |kind: &str, address: String| NodeAddress { type_: kind.to_owned(), address };
    let hostname = address("Hostname", plan.hostname.clone());
    if plan.external_cloud && plan.node_ips.is_empty() {
        status.addresses = Some(vec![hostname]);
        return;
    }
    let Some(Ok(ips)) = &facts.addresses else { return };
    let ips = ips.iter().map(|ip| address("InternalIP", ip.to_string()));
    status.addresses = Some(ips.chain([hostname]).collect());
}

fn machine(plan: &Plan, status: &mut NodeStatus, facts: &Facts, events: &mut Vec<NodeEvent>) {
    let capacity = status.capacity.get_or_insert_default();
    let empty = Machine {
        capacity: BTreeMap::from([
            (CPU.to_owned(), Quantity::ZERO),
            (MEMORY.to_owned(), Quantity::from_bytes(0)),
            ("pods".to_owned(), Quantity::from_units(plan.max_pods)),
        ]),
        ..Machine::default()
    };
    let seen = facts.machine.as_ref();
    let machine = seen.unwrap_or(&empty);
    for (name, amount) in &machine.capacity {
        put(capacity, name, *amount);
    }
    let allocatable = status.allocatable.get_or_insert_default();
    allocatable.retain(|name, _| capacity.contains_key(name) || !is_extended(name));
    for (name, all) in capacity.iter() {
        // What others advertise (patched extended resources) is allocatable as a whole.
        let all = Quantity::try_from(all).unwrap_or_default();
        put(allocatable, name, machine.allocatable.get(name).copied().unwrap_or(all));
    }
    let Some(machine) = seen else { return };
    let info = status.node_info.get_or_insert_default();
    info.machine_id.clone_from(&machine.machine_id);
    info.system_uuid.clone_from(&machine.system_uuid);
    if !info.boot_id.is_empty() && info.boot_id != machine.boot_id {
        let message = format!("Node {} has been rebooted, boot id: {}", plan.name, machine.boot_id);
        events.push(NodeEvent {
            kind: EventType::Warning,
            reason: "Rebooted".into(),
            message,
            object: EventObject::Node,
        });
    }
    info.boot_id.clone_from(&machine.boot_id);
    let swap = i64::try_from(machine.swap_bytes).unwrap_or(i64::MAX);
    info.swap = (swap > 0).then_some(NodeSwapStatus { capacity: Some(swap) });
}

/// Keeps the notation of an amount that is the same.
fn put(list: &mut BTreeMap<String, ApiQuantity>, name: &str, amount: Quantity) {
    if list.get(name).and_then(|q| Quantity::try_from(q).ok()) != Some(amount) {
        list.insert(name.to_owned(), amount.to_api());
    }
}

fn versions(plan: &Plan, status: &mut NodeStatus, facts: &Facts) {
    let info = status.node_info.get_or_insert_default();
    info.kernel_version.clone_from(&facts.kernel_version);
    info.os_image = if facts.os_image.is_empty() { "Linux".to_owned() } else { facts.os_image.clone() };
    if let Some(runtime) = &facts.runtime {
        let version = if runtime.version.is_empty() { "Unknown" } else { &runtime.version };
        info.container_runtime_version = format!("{}://{version}", runtime.name);
    }
    info.kubelet_version.clone_from(&plan.version);
    info.kube_proxy_version = String::new();
    info.operating_system = "linux".to_owned();
    info.architecture.clone_from(&plan.arch);
}

/// The largest first, each with its names by digest before those by tag.
fn images(plan: &Plan, seen: &[Image]) -> Option<Vec<ContainerImage>> {
    let mut seen: Vec<&Image> = seen.iter().collect();
    // Equal sizes keep one order whatever order the runtime lists them in: no report for nothing.
    seen.sort_by(|a, b| {
        b.size_bytes.cmp(&a.size_bytes).then_with(|| a.tags.cmp(&b.tags)).then_with(|| a.digests.cmp(&b.digests))
    });
    let of = |image: &Image| ContainerImage {
        names: Some(image.digests.iter().chain(&image.tags).take(MAX_NAMES).cloned().collect()),
        size_bytes: Some(i64::try_from(image.size_bytes).unwrap_or(i64::MAX)),
    };
    let most = plan.max_images.unwrap_or(usize::MAX);
    let images: Vec<ContainerImage> = seen.into_iter().take(most).map(of).collect();
    (!images.is_empty()).then_some(images)
}
