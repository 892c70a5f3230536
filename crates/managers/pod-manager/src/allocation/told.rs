//! Pure: what the status of a pod says of its resources, as an earlier daemon told it.

use std::collections::BTreeMap;

use model::Timestamp;
use model::allocation::{Allocation, PendingResize, Resizable};
use model::core::{Container, ContainerStatus, Pod, PodStatus, ResourceRequirements};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use pod_status::reasons::condition;

type List = BTreeMap<String, Quantity>;

/// A resize that was not granted.
pub(crate) fn pending(pod: &Pod) -> Option<PendingResize> {
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let told = conditions.find(|c| c.type_ == condition::RESIZE_PENDING && c.status == "True")?;
    Some(PendingResize {
        infeasible: told.reason.as_deref() == Some("Infeasible"),
        message: told.message.clone().unwrap_or_default(),
        generation: told.observed_generation.unwrap_or(0),
        since: told.last_transition_time.as_ref().map_or(Timestamp::ZERO, Timestamp::from_api),
    })
}

/// What the pod was granted: requests are told as such, limits as they are in force. Containers that nothing is told of are left
/// out; `None`: so are all.
pub(crate) fn allocation(pod: &Pod, what: Resizable) -> Option<Allocation> {
    let status = pod.status.as_ref()?;
    let of = |name: &str| all(status).find(|told| told.name == name);
    let granted = |c: &Container| {
        let told = of(&c.name)?;
        let limits = told.resources.as_ref()?.limits.clone();
        let claims = c.resources.as_ref().and_then(|r| r.claims.clone());
        Some((c.name.clone(), ResourceRequirements { requests: told.allocated_resources.clone(), limits, claims }))
    };
    let containers: BTreeMap<_, _> = what.containers(pod).filter_map(granted).collect();
    let level = pod.spec.as_ref().and_then(|s| s.resources.as_ref()).filter(|_| what.pod_level);
    let of_pod = level.map(|wanted| ResourceRequirements {
        requests: corrected(wanted.requests.as_ref(), status.allocated_resources.as_ref()),
        limits: corrected(wanted.limits.as_ref(), status.resources.as_ref().and_then(|r| r.limits.as_ref())),
        claims: wanted.claims.clone(),
    });
    (!containers.is_empty()).then_some(Allocation { containers, pod: of_pod })
}

/// The status of a pod also tells of what only its containers ask for.
fn corrected(wanted: Option<&List>, told: Option<&List>) -> Option<List> {
    let of = |(name, amount): (&String, &Quantity)| {
        let told = told.and_then(|told| told.get(name));
        (name.clone(), told.unwrap_or(amount).clone())
    };
    wanted.map(|wanted| wanted.iter().map(of).collect())
}

fn all(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    status.init_container_statuses.iter().chain(&status.container_statuses).flatten()
}

#[cfg(test)]
mod tests;
