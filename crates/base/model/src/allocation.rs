//! What was granted to a pod of the resources that can change while it runs (in-place resize, KEP-1287 and KEP-5419).
//!
//! Three layers (node-and-resources 1.12): *desired* is the specification, *allocated* is what admission granted of it
//! ([`Allocation`]), *actuated* is what the runtime was told last ([`Amounts`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::core::{Container, Pod, ResourceRequirements};
use crate::pod;
use crate::quantity::Quantity;
use crate::resources::{self, CPU, MEMORY, ResourceList};

#[cfg(test)]
mod tests;

/// What can be resized, by the feature gates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resizable {
    /// `InPlacePodLevelResourcesVerticalScaling`: `spec.resources`.
    pub pod_level: bool,
    /// `InPlacePodVerticalScalingInitContainers`: init containers that are no sidecars.
    pub init_containers: bool,
}

impl Default for Resizable {
    /// As in 1.36.
    fn default() -> Self {
        Self { pod_level: true, init_containers: true }
    }
}

impl Resizable {
    /// Containers whose resources can change.
    pub fn containers(self, pod: &Pod) -> impl Iterator<Item = &Container> {
        let init = pod::init_containers(pod).iter();
        init.filter(move |c| self.init_containers || pod::is_sidecar(c)).chain(pod::regular_containers(pod))
    }
}

/// Resources that were granted to a pod. In JSON as an entry of a kubelet's checkpoint `allocated_pods_state`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Allocation {
    /// By container name; of those that can be resized.
    #[serde(rename = "ContainerResources", default, deserialize_with = "or_empty")]
    pub containers: BTreeMap<String, ResourceRequirements>,
    /// `spec.resources`.
    #[serde(rename = "PodLevelResources", default)]
    pub pod: Option<ResourceRequirements>,
}

/// Go writes an empty map as `null`.
fn or_empty<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, ResourceRequirements>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl Allocation {
    /// All that the specification asks for.
    #[must_use]
    pub fn of(pod: &Pod, what: Resizable) -> Self {
        let of = |c: &Container| (c.name.clone(), c.resources.clone().unwrap_or_default());
        Self {
            containers: what.containers(pod).map(of).collect(),
            pod: pod.spec.as_ref().and_then(|s| s.resources.clone()).filter(|_| what.pod_level),
        }
    }

    /// Whether the specification asks for just this. Containers that are not named count as granted.
    #[must_use]
    pub fn agrees(&self, pod: &Pod, what: Resizable) -> bool {
        let granted = |c: &Container| self.containers.get(&c.name).is_none_or(|r| same(Some(r), c.resources.as_ref()));
        let level = pod.spec.as_ref().and_then(|s| s.resources.as_ref());
        what.containers(pod).all(granted) && (!what.pod_level || same(self.pod.as_ref(), level))
    }

    /// The pod with what was granted in place of what it asks for; the same one where that is no difference.
    #[must_use]
    pub fn overlay(&self, pod: &Arc<Pod>, what: Resizable) -> Arc<Pod> {
        if self.agrees(pod, what) {
            return pod.clone();
        }
        let mut pod = Pod::clone(pod);
        if let Some(spec) = &mut pod.spec {
            let init = spec.init_containers.iter_mut().flatten();
            for c in init.filter(|c| what.init_containers || pod::is_sidecar(c)).chain(&mut spec.containers) {
                let granted = self.containers.get(&c.name);
                if let Some(granted) = granted.filter(|g| !same(Some(g), c.resources.as_ref())) {
                    c.resources = Some(granted.clone());
                }
            }
            if what.pod_level && !same(self.pod.as_ref(), spec.resources.as_ref()) {
                spec.resources.clone_from(&self.pod);
            }
        }
        Arc::new(pod)
    }
}

/// Whether two pods ask for the same of what can be resized.
#[must_use]
pub fn asks_the_same(a: &Pod, b: &Pod, what: Resizable) -> bool {
    Allocation::of(a, what).agrees(b, what)
}

/// Equal amounts; how they are written does not count, nor whether a list is empty or absent.
fn same(a: Option<&ResourceRequirements>, b: Option<&ResourceRequirements>) -> bool {
    resources::requests_of(a) == resources::requests_of(b) && resources::limits_of(a) == resources::limits_of(b)
}

/// CPU and memory of a container, or of a pod as a whole. Zero: none is named.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Amounts {
    /// Requested CPU in thousandths of a core.
    pub cpu_request_milli: i64,
    /// Most CPU in thousandths of a core.
    pub cpu_limit_milli: i64,
    /// Requested memory in bytes.
    pub memory_request_bytes: i64,
    /// Most memory in bytes.
    pub memory_limit_bytes: i64,
}

impl Amounts {
    /// Of a container; where it has no limit that of its pod counts.
    #[must_use]
    pub fn of(pod: &Pod, c: &Container) -> Self {
        let mut limits = resources::limits(c);
        for name in [CPU, MEMORY] {
            if let (false, Some(level)) = (limits.contains_key(name), resources::pod_level_limit(pod, name)) {
                limits.insert(name.to_owned(), level);
            }
        }
        Self::from_lists(&resources::requests(c), &limits)
    }

    /// Of `spec.resources`.
    #[must_use]
    pub fn of_pod_level(pod: &Pod) -> Self {
        let level = pod.spec.as_ref().and_then(|s| s.resources.as_ref());
        Self::from_lists(&resources::requests_of(level), &resources::limits_of(level))
    }

    /// Puts them in place of the CPU and memory of these lists; an amount of zero goes.
    pub fn put(&self, requests: &mut ResourceList, limits: &mut ResourceList) {
        let amounts = |milli, bytes| [(CPU, Quantity::from_millis(milli)), (MEMORY, Quantity::from_bytes(bytes))];
        let all = [
            (requests, amounts(self.cpu_request_milli, self.memory_request_bytes)),
            (limits, amounts(self.cpu_limit_milli, self.memory_limit_bytes)),
        ];
        for (list, amounts) in all {
            for (name, amount) in amounts {
                if amount == Quantity::ZERO {
                    list.remove(name);
                } else if list.get(name) != Some(&amount) {
                    list.insert(name.to_owned(), amount);
                }
            }
        }
    }

    /// The container with these amounts.
    #[must_use]
    pub fn on(&self, mut container: Container) -> Container {
        let (mut requests, mut limits) = (resources::requests(&container), resources::limits(&container));
        self.put(&mut requests, &mut limits);
        let api = |list: ResourceList| {
            let list: BTreeMap<_, _> = list.into_iter().map(|(name, q)| (name, q.to_api())).collect();
            (!list.is_empty()).then_some(list)
        };
        let claims = container.resources.and_then(|r| r.claims);
        container.resources = Some(ResourceRequirements { requests: api(requests), limits: api(limits), claims });
        container
    }

    fn from_lists(requests: &ResourceList, limits: &ResourceList) -> Self {
        let milli = |list: &ResourceList| list.get(CPU).map_or(0, |q| q.milli_value());
        let bytes = |list: &ResourceList| list.get(MEMORY).map_or(0, |q| q.value());
        Self {
            cpu_request_milli: milli(requests),
            cpu_limit_milli: milli(limits),
            memory_request_bytes: bytes(requests),
            memory_limit_bytes: bytes(limits),
        }
    }
}

/// What events say of a resize: a line of JSON in the order of a kubelet. `error`: empty, nothing went wrong.
#[must_use]
pub fn summary(pod: &Pod, generation: i64, error: &str) -> String {
    let list = |name: &str, containers: &[Container]| {
        let of = |c: &Container| {
            let resources = serde_json::to_string(&c.resources.clone().unwrap_or_default()).unwrap_or_default();
            format!("{{\"name\":{},\"resources\":{resources}}}", crate::go_json::quoted(&c.name))
        };
        let all: Vec<String> = containers.iter().map(of).collect();
        if all.is_empty() { String::new() } else { format!("\"{name}\":[{}],", all.join(",")) }
    };
    let error = if error.is_empty() { String::new() } else { format!(",\"error\":{}", crate::go_json::quoted(error)) };
    let init = list("initContainers", pod::init_containers(pod));
    let regular = list("containers", pod::regular_containers(pod));
    format!("{{{init}{regular}\"generation\":{generation}{error}}}")
}

/// Why a resize waits, or is refused; the condition `PodResizePending`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PendingResize {
    /// It cannot be had on this node at all; else it is tried again when there may be room.
    pub infeasible: bool,
    /// Text for people.
    pub message: String,
    /// `metadata.generation` that asks for it.
    pub generation: i64,
    /// Since when for this reason, nanoseconds since the epoch.
    pub since: crate::Timestamp,
}

impl PendingResize {
    /// The word of the condition.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        if self.infeasible { "Infeasible" } else { "Deferred" }
    }
}

/// A resize that was granted and is being carried out; the condition `PodResizeInProgress`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ResizeInProgress {
    /// `metadata.generation` that it began with.
    pub generation: i64,
    /// What went wrong last.
    pub error: Option<String>,
}
