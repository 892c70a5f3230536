//! May this pod run here now? (node-and-resources 5, pod-lifecycle 1.11)
//!
//! Owns the whole chain of handlers, in the kubelet's order: eviction pressure, sysctls, predicates with critical-pod
//! preemption, AppArmor, pod features, node shutdown. The first handler that rejects ends it. Never acts: victims are
//! named, killing them is the caller's. Device, CPU and memory managers are asked elsewhere.

#![forbid(unsafe_code)]

mod affinity;
mod facts;
mod features;
mod fit;
mod ports;
mod predicates;
mod preempt;
mod pressure;
mod rejection;
mod resize;
mod sysctl;
mod taints;

pub use crate::facts::NodeFacts;
pub use crate::rejection::Rejection;
pub use crate::resize::{Candidate, ResizeVerdict, decide_resize, operations, order};
pub use crate::taints::tolerates;
pub use model::node::Pressure;

use model::PodUid;
use model::core::Pod;

/// `status.reason` and event reason of a pod that made room for a critical one.
pub const PREEMPTING: &str = "Preempting";
/// `status.message` and event message of such a pod.
pub const PREEMPTED: &str = "Preempted in order to admit critical pod";

/// What becomes of a pod that asks to run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Admit,
    /// It never runs: phase Failed, no container is made.
    Reject(Rejection),
    /// It runs once these pods are killed ([`PREEMPTING`], [`PREEMPTED`], no grace override); a failed kill stops nothing.
    Preempt {
        /// In the order to kill: BestEffort, Burstable, Guaranteed.
        victims: Vec<PodUid>,
    },
}

/// Decides about `pod` beside the `active` pods (without itself).
pub fn decide<'a>(pod: &Pod, active: impl Iterator<Item = &'a Pod> + Clone, node: &NodeFacts) -> Verdict {
    match chain(pod, active, node) {
        Ok(victims) if victims.is_empty() => Verdict::Admit,
        Ok(victims) => Verdict::Preempt { victims },
        Err(rejection) => Verdict::Reject(rejection),
    }
}

/// [`decide`] for a caller that cannot preempt: a pod that would need victims is refused for the resource it lacks.
///
/// # Errors
/// The first rejection.
pub fn admit<'a>(pod: &Pod, active: impl Iterator<Item = &'a Pod> + Clone, node: &NodeFacts) -> Result<(), Rejection> {
    match decide(pod, active.clone(), node) {
        Verdict::Admit => Ok(()),
        Verdict::Reject(rejection) => Err(rejection),
        Verdict::Preempt { .. } => match fit::shortages(pod, active, node).into_iter().next() {
            Some(shortage) => Err(shortage.rejection()),
            None => Ok(()),
        },
    }
}

/// The handlers in the order of 5.1. Preemption comes in the middle, yet later handlers may still refuse the pod: they are
/// asked before a victim is killed, so that no pod dies for one that does not run.
fn chain<'a>(
    pod: &Pod,
    active: impl Iterator<Item = &'a Pod> + Clone,
    node: &NodeFacts,
) -> Result<Vec<PodUid>, Rejection> {
    pressure::check(pod, &node.pressures)?;
    sysctl::check(pod, node)?;
    let victims = predicates::check(pod, active, node)?;
    features::apparmor(pod, node)?;
    features::pod_level(pod, node)?;
    features::declared(pod, node)?;
    if node.shutting_down {
        return Err(Rejection::new("NodeShutdown", "Pod was rejected as the node is shutting down."));
    }
    Ok(victims)
}

#[cfg(test)]
mod tests;
