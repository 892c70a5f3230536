//! May a pod that runs here have other resources (node-and-resources 1.12)?

use std::cmp::Reverse;

use model::Timestamp;
use model::allocation::Resizable;
use model::core::{Container, Pod};
use model::pod;
use model::quantity::Quantity;
use model::resources::{self, CPU, MEMORY, QosClass};

use crate::{NodeFacts, Rejection, Verdict, decide};

/// What becomes of a resize.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResizeVerdict {
    /// The pod gets what it asks for.
    Grant,
    /// It gets it when there is room.
    Defer {
        /// Why not now: what admission of a new pod would say.
        why: Rejection,
    },
    /// It cannot have it here at all.
    Infeasible {
        /// For people.
        message: String,
        /// For metrics.
        detail: &'static str,
    },
    /// It gets it once these pods are killed, for it is critical.
    Preempt {
        /// In the order to kill.
        victims: Vec<model::PodUid>,
    },
}

/// Decides whether `pod`, of which `allocated` is granted, gets all that it asks for, beside the `others`: all with what is
/// granted to them.
pub fn decide_resize<'a>(
    pod: &Pod,
    allocated: &Pod,
    others: impl Iterator<Item = &'a Pod> + Clone,
    node: &NodeFacts,
) -> ResizeVerdict {
    if swaps(pod, allocated, node) {
        let message = "In-place resize of containers with swap is not supported.".to_owned();
        return ResizeVerdict::Infeasible { message, detail: "swap_limitation" };
    }
    match decide(pod, others, node) {
        Verdict::Admit => ResizeVerdict::Grant,
        Verdict::Reject(why) => ResizeVerdict::Defer { why },
        Verdict::Preempt { victims } => ResizeVerdict::Preempt { victims },
    }
}

/// Whether the memory of a container would change that may use swap, which depends on it, without starting it anew.
fn swaps(pod: &Pod, allocated: &Pod, node: &NodeFacts) -> bool {
    let may_swap = |p: &Pod, c: &Container| {
        let (request, limit) = (resources::request(c, MEMORY), resources::limit(c, MEMORY));
        let some = request.is_some_and(|q| q.value() > 0);
        some && request != limit && resources::qos_class(p) == QosClass::Burstable && !pod::is_critical(p)
    };
    let restarts = |c: &Container| {
        let policy = c.resize_policy.iter().flatten().find(|p| p.resource_name == MEMORY);
        policy.is_some_and(|p| p.restart_policy == "RestartContainer")
    };
    let all = pod::init_containers(pod).iter().chain(pod::regular_containers(pod));
    node.limited_swap
        && all.filter_map(|c| Some((c, pod::find_container(allocated, &c.name)?.1))).any(|(c, has)| {
            let changes = resources::request(c, MEMORY) != resources::request(&has, MEMORY);
            changes && !restarts(&has) && (may_swap(pod, c) || may_swap(allocated, &has))
        })
}

/// A resize that waits.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The pod as it asks to be.
    pub pod: &'a Pod,
    /// The pod with what it is granted.
    pub allocated: &'a Pod,
    /// Since when it is told that it waits; `None`: it is new.
    pub since: Option<Timestamp>,
}

/// The order in which resizes are tried: what takes nothing first, then by priority, Guaranteed pods before others, then whoever
/// waits longest.
#[must_use]
pub fn order(candidate: &Candidate<'_>) -> impl Ord + use<> {
    let grows = |name| amount(candidate.pod, name) > amount(candidate.allocated, name);
    let priority = candidate.pod.spec.as_ref().and_then(|s| s.priority).unwrap_or(0);
    let guaranteed = resources::qos_class(candidate.pod) == QosClass::Guaranteed;
    let uid = pod::uid(candidate.pod);
    let since = candidate.since.map_or((1, Timestamp::ZERO), |since| (0, since));
    (grows(CPU) || grows(MEMORY), Reverse(priority), Reverse(guaranteed), since, uid)
}

fn amount(pod: &Pod, name: &str) -> Quantity {
    resources::pod_requests(pod).get(name).copied().unwrap_or_default()
}

/// Reads one amount of a container.
type Amount = fn(&Container, &str) -> Option<Quantity>;

/// What a change of the specification asks for: resource, requirement and operation of each amount, as metrics name them.
#[must_use]
pub fn operations(old: &Pod, new: &Pod, what: Resizable) -> Vec<[&'static str; 3]> {
    let mut out = Vec::new();
    for after in what.containers(new) {
        let Some((_, before)) = pod::find_container(old, &after.name) else { continue };
        for name in [MEMORY, CPU] {
            for (requirement, of) in
                [("requests", resources::request as Amount), ("limits", resources::limit as Amount)]
            {
                let [from, to] = [&before, after].map(|c| of(c, name).unwrap_or_default());
                let zero = Quantity::ZERO;
                let operation = match (from == zero, to == zero) {
                    (false, true) => "remove",
                    (true, false) => "add",
                    _ if to < from => "decrease",
                    _ if to > from => "increase",
                    _ => continue,
                };
                out.push([name, requirement, operation]);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
