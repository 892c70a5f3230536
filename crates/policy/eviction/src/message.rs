//! What is said of a pod that has to go (node-and-resources 3.7).

use std::collections::BTreeMap;

use model::core::Pod;
use model::pod;
use model::quantity::Quantity;
use model::resources::{self, MEMORY};
use model::stats::{ContainerStats, PodStats};

use crate::signal::{Resource, Signals, Threshold};

/// Text of the status and the event, and annotations of the event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Why it goes.
    pub message: String,
    /// The same for programs.
    pub annotations: BTreeMap<String, String>,
}

/// What is said when `resource` runs short. `due`: thresholds that are crossed; the first of this resource is named.
#[must_use]
pub fn told(resource: Resource, pod: &Pod, stats: Option<&PodStats>, due: &[Threshold], seen: &Signals) -> Told {
    let name = resource.as_str();
    let mut told = Told { message: low_on(resource), ..Told::default() };
    let crossed = due.iter().filter(|t| t.signal.resource() == resource);
    if let Some((threshold, seen)) = crossed.filter_map(|t| Some((t, seen.get(&t.signal)?))).next() {
        let (quantity, available) = (threshold.below.quantity(seen.capacity), resource.quantity(seen.available));
        told.message += &format!("Threshold quantity: {quantity}, available: {available}. ");
    }
    let Some(stats) = stats else { return told };
    if resource == Resource::Memory {
        blame_pod(pod, stats, &mut told);
    }
    blame_containers(resource, pod, stats, &mut told);
    told.annotations.insert("starved_resource".to_owned(), name.to_owned());
    told
}

fn low_on(resource: Resource) -> String {
    format!("The node was low on resource: {}. ", resource.as_str())
}

/// Whether it is this that ran short, by what was [`told`] of a pod.
#[must_use]
pub fn was_for(resource: Resource, message: &str) -> bool {
    message.starts_with(&low_on(resource))
}

/// A pod that requests as a whole is named as a whole.
fn blame_pod(pod: &Pod, stats: &PodStats, told: &mut Told) {
    let (Some(request), Some(memory)) = (resources::pod_level_request(pod, MEMORY), stats.memory) else { return };
    let (name, usage) = (pod::name(pod), bytes(memory.working_set_bytes.unwrap_or(0)));
    told.message += &blame("Pod", name, usage, request, MEMORY);
    told.annotations.insert("offending_pod".to_owned(), name.to_owned());
    told.annotations.insert("offending_pod_usage".to_owned(), usage.to_string());
}

fn blame_containers(resource: Resource, pod: &Pod, stats: &PodStats, told: &mut Told) {
    let (mut names, mut usages) = (Vec::new(), Vec::new());
    for measured in &stats.containers {
        let mut all = pod::regular_containers(pod).iter().chain(pod::init_containers(pod));
        let Some(container) = all.find(|c| c.name == measured.name) else { continue };
        let request = resources::request(container, resource.as_str()).unwrap_or_default();
        let Some(usage) = usage(resource, measured).filter(|usage| *usage > request) else { continue };
        told.message += &blame("Container", &container.name, usage, request, resource.as_str());
        names.push(container.name.clone());
        usages.push(usage.to_string());
    }
    told.annotations.insert("offending_containers".to_owned(), names.join(","));
    told.annotations.insert("offending_containers_usage".to_owned(), usages.join(","));
}

fn blame(what: &str, name: &str, usage: Quantity, request: Quantity, resource: &str) -> String {
    format!("{what} {name} was using {usage}, request is {request}, has larger consumption of {resource}. ")
}

/// What a container uses; nothing is said of inodes and processes.
fn usage(resource: Resource, measured: &ContainerStats) -> Option<Quantity> {
    match resource {
        Resource::Memory => measured.memory.as_ref()?.working_set_bytes.map(bytes),
        Resource::EphemeralStorage => {
            let (layer, logs) = (measured.rootfs.as_ref()?.used_bytes?, measured.logs.as_ref()?.used_bytes?);
            Some(bytes(layer.saturating_add(logs)))
        }
        Resource::Inodes | Resource::Pids => None,
    }
}

fn bytes(n: u64) -> Quantity {
    Quantity::from_bytes(i64::try_from(n).unwrap_or(i64::MAX))
}
