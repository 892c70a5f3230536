//! The predicates and what follows from their failures (node-and-resources 5.2).

use model::PodUid;
use model::core::Pod;
use model::pod::{is_critical, is_static};

use crate::facts::NodeFacts;
use crate::fit::Shortage;
use crate::rejection::Rejection;
use crate::{affinity, fit, ports, preempt, taints};

/// The pods that must be killed first (none: admitted as it is), or the refusal. What preemption cannot mend is checked before
/// it.
pub(crate) fn check<'a>(
    pod: &Pod,
    active: impl Iterator<Item = &'a Pod> + Clone,
    node: &NodeFacts,
) -> Result<Vec<PodUid>, Rejection> {
    operating_system(pod)?;
    supplemental_groups(pod, node)?;
    let short = fit::shortages(pod, active.clone(), node);
    let other = failures(pod, active.clone(), node);
    match short.first() {
        Some(shortage) if !is_critical(pod) => return Err(shortage.rejection()),
        _ => (),
    }
    // A critical pod is not refused for resources: preemption makes room for it.
    if let Some(failure) = other.first() {
        return Err(failure.rejection(other.len() == 1 && short.is_empty()));
    }
    make_room(pod, active, &short)
}

/// Whom to displace for what is short: nobody when nothing is.
fn make_room<'a>(
    pod: &Pod,
    active: impl Iterator<Item = &'a Pod>,
    short: &[Shortage],
) -> Result<Vec<PodUid>, Rejection> {
    preempt::victims(pod, active, short).map_err(|why| {
        let text = format!(
            "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: {why}"
        );
        Rejection::new("UnexpectedAdmissionError", text)
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    Affinity,
    Name,
    Ports,
    Taint,
}

impl Failure {
    fn rejection(self, alone: bool) -> Rejection {
        let (name, why) = match self {
            Failure::Affinity => ("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"),
            Failure::Name => ("NodeName", "node(s) didn't match the requested node name"),
            Failure::Ports => ("NodePorts", "node(s) didn't have free ports for the requested pod ports"),
            Failure::Taint => ("TaintToleration", "node(s) had taints that the pod didn't tolerate"),
        };
        let with_fresh_node = alone && self == Failure::Affinity;
        Rejection { with_fresh_node, ..Rejection::new(name, format!("Predicate {name} failed: {why}")) }
    }
}

/// Everything else that does not fit, in the order of node-and-resources 5.2. Static pods stay whatever the taints say.
fn failures<'a>(pod: &Pod, active: impl Iterator<Item = &'a Pod>, node: &NodeFacts) -> Vec<Failure> {
    let bound = pod.spec.as_ref().and_then(|s| s.node_name.as_deref()).unwrap_or_default();
    let fits = [
        (Failure::Affinity, affinity::selects(pod, node)),
        (Failure::Name, bound.is_empty() || node.name.is_empty() || bound == node.name),
        (Failure::Ports, ports::free(pod, active)),
        (Failure::Taint, is_static(pod) || !taints::untolerated(pod, &node.taints)),
    ];
    fits.into_iter().filter(|(_, fits)| !fits).map(|(failure, _)| failure).collect()
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

fn supplemental_groups(pod: &Pod, node: &NodeFacts) -> Result<(), Rejection> {
    let policy = pod.spec.as_ref().and_then(|s| s.security_context.as_ref()?.supplemental_groups_policy.as_deref());
    if policy == Some("Strict") && !node.supplemental_groups_policy {
        let text = "SupplementalGroupsPolicy=Strict is not supported in this node";
        return Err(Rejection::new("SupplementalGroupsPolicyNotSupported", text));
    }
    Ok(())
}
