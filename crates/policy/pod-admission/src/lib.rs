//! May this pod run here now? (node-and-resources chapter 5)
//!
//! Owns the handlers that a node without API server needs: sysctls, operating system, resource fit, host ports, node
//! selector. Node affinity expressions, taints, eviction pressure, preemption and AppArmor come with the cluster.

#![forbid(unsafe_code)]

mod ports;
mod sysctl;

use std::collections::BTreeMap;

use model::core::Pod;
use model::quantity::Quantity;
use model::resources::{self, CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList};

/// What admission needs to know of the node.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    /// Allocatable amounts, `pods` included.
    pub allocatable: ResourceList,
    /// Labels of the node.
    pub labels: BTreeMap<String, String>,
    /// Patterns of `allowedUnsafeSysctls`: a name, or a prefix that ends with `*`.
    pub unsafe_sysctls: Vec<String>,
}

/// Why a pod is refused: the first reason that applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// CamelCase, e.g. `OutOfcpu`.
    pub reason: String,
    /// Text for people.
    pub message: String,
}

impl Rejection {
    fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }
}

/// Admits `pod` beside the `active` pods, or says why not. Handlers in the order of 5.1.
///
/// # Errors
/// The first rejection.
pub fn admit<'a>(pod: &Pod, active: impl Iterator<Item = &'a Pod> + Clone, node: &NodeFacts) -> Result<(), Rejection> {
    sysctl::check(pod, &node.unsafe_sysctls)?;
    operating_system(pod)?;
    fit(pod, active.clone(), node)?;
    selector(pod, node)?;
    ports::check(pod, active)
}

fn operating_system(pod: &Pod) -> Result<(), Rejection> {
    let labels = pod.metadata.labels.as_ref();
    if labels.and_then(|l| l.get("kubernetes.io/os")).is_some_and(|os| os != "linux") {
        let text = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
        return Err(Rejection::new("PodOSSelectorNodeLabelDoesNotMatch", text));
    }
    let os = pod.spec.as_ref().and_then(|s| s.os.as_ref());
    if os.is_some_and(|os| os.name != "linux") {
        let text = "Failed to admit pod as the OS field doesn't match node OS";
        return Err(Rejection::new("PodOSNotSupported", text));
    }
    Ok(())
}

/// Every resource of the pod beside what the active pods hold; `pods` counts the pods.
fn fit<'a>(pod: &Pod, active: impl Iterator<Item = &'a Pod> + Clone, node: &NodeFacts) -> Result<(), Rejection> {
    if let Some(most) = node.allocatable.get("pods").map(|q| q.value()) {
        let used = i64::try_from(active.clone().count()).unwrap_or(i64::MAX);
        if used + 1 > most {
            return Err(insufficient("pods", 1, used, most));
        }
    }
    let wanted = resources::pod_requests(pod);
    let first = [CPU, MEMORY, EPHEMERAL_STORAGE];
    let others = wanted.keys().map(String::as_str).filter(|name| !first.contains(name));
    for name in first.into_iter().chain(others) {
        let Some(capacity) = node.allocatable.get(name).copied() else { continue };
        let asked = wanted.get(name).copied().unwrap_or_default();
        if asked.is_zero() {
            continue;
        }
        let held = active.clone().map(|p| resources::pod_requests(p).get(name).copied().unwrap_or_default());
        let used = held.fold(Quantity::default(), Quantity::plus);
        let number = |q: Quantity| if name == CPU { q.milli_value() } else { q.value() };
        if number(asked) > number(capacity) - number(used) {
            return Err(insufficient(name, number(asked), number(used), number(capacity)));
        }
    }
    Ok(())
}

fn insufficient(name: &str, asked: i64, used: i64, capacity: i64) -> Rejection {
    let text =
        format!("Node didn't have enough resource: {name}, requested: {asked}, used: {used}, capacity: {capacity}");
    Rejection::new(format!("OutOf{name}"), text)
}

fn selector(pod: &Pod, node: &NodeFacts) -> Result<(), Rejection> {
    let wanted = pod.spec.as_ref().and_then(|s| s.node_selector.as_ref());
    let missing = wanted.into_iter().flatten().any(|(k, v)| node.labels.get(k) != Some(v));
    if missing {
        let text = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
        return Err(Rejection::new("NodeAffinity", text));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
