//! Resources as the status shows them: of the pod, and of each container (1.33 and later).

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::allocation::Amounts;
use model::core::{Container, Pod, ResourceRequirements};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use model::quantity::Quantity;
use model::resources::{self, CPU, MEMORY, ResourceList};
use model::runtime::{ContainerObservation, ContainerState, RuntimeResources};

#[cfg(test)]
mod tests;

type ApiList = BTreeMap<String, ApiQuantity>;

/// The smallest cpu.shares; what the kernel shows when nothing was asked for.
const MIN_SHARES: i64 = 2;

pub(crate) struct Figures {
    pub(crate) in_force: ResourceRequirements,
    pub(crate) allocated: Option<ApiList>,
}

/// Sums of the pod (KEP-5419). Once it has run, of cpu and memory what its cgroup held: no limit unless every container has
/// one, and no request for the smallest shares.
pub(crate) fn of_pod(pod: &Pod, actuated: &BTreeMap<String, Amounts>, has_run: bool) -> Figures {
    let allocated = resources::pod_requests(pod);
    let pod = in_force(pod, actuated);
    let mut requests = match &pod {
        Cow::Borrowed(_) => allocated.clone(),
        Cow::Owned(pod) => resources::pod_requests(pod),
    };
    let pod = &*pod;
    let mut limits = resources::pod_limits(pod);
    if has_run {
        requests.retain(|name, q| match name.as_str() {
            CPU => shares(q.milli_value()) > MIN_SHARES || resources::pod_level_request(pod, CPU).is_some(),
            MEMORY => true,
            other => resources::pod_level_request(pod, other).is_some(),
        });
        limits.retain(|name, _| match name.as_str() {
            CPU | MEMORY => resources::every_container_limits(pod, name),
            other => resources::pod_level_limit(pod, other).is_some(),
        });
    }
    figures(&requests, &limits, &allocated)
}

/// The pod with what its containers have in place of what they shall have.
fn in_force<'a>(pod: &'a Pod, actuated: &BTreeMap<String, Amounts>) -> Cow<'a, Pod> {
    let mut pod = Cow::Borrowed(pod);
    if !actuated.is_empty()
        && let Some(spec) = &mut pod.to_mut().spec
    {
        for c in spec.init_containers.iter_mut().flatten().chain(&mut spec.containers) {
            if let Some(amounts) = actuated.get(&c.name) {
                *c = amounts.on(std::mem::take(c));
            }
        }
    }
    pod
}

/// What was allocated, corrected by what is in force while the container runs: by the runtime's word, else by what it was told
/// last, where that is not all that was allocated.
pub(crate) fn of_container(container: &Container, seen: &ContainerObservation, actuated: Option<&Amounts>) -> Figures {
    let allocated = resources::requests(container);
    let (mut requests, mut limits) = (allocated.clone(), resources::limits(container));
    if seen.state == ContainerState::Running {
        if let Some(amounts) = actuated {
            amounts.put(&mut requests, &mut limits);
        }
        if let Some(actual) = &seen.resources {
            correct(&mut requests, &mut limits, actual);
        }
    }
    figures(&requests, &limits, &allocated)
}

/// Puts actual values in place of those that differ. A container that names no limits, or no requests, shows none: what it has
/// is its pod's. An equal value keeps its text; a value that the runtime does not
/// give stays as it was allocated.
fn correct(requests: &mut ResourceList, limits: &mut ResourceList, actual: &RuntimeResources) {
    let asked = requests.get(CPU).map_or(0, |q| q.milli_value());
    if !requests.is_empty() && actual.cpu_shares > 0 && actual.cpu_shares != shares(asked) {
        requests.insert(CPU.to_owned(), Quantity::from_millis(milli_of_shares(actual.cpu_shares)));
    }
    if limits.is_empty() {
        return;
    }
    if actual.cpu_quota_us > 0 && actual.cpu_period_us > 0 {
        let limited = limits.get(CPU).map_or(0, |q| q.milli_value());
        let expected = (limited.saturating_mul(actual.cpu_period_us) / 1000).max(1000);
        if limited == 0 || expected != actual.cpu_quota_us {
            limits.insert(
                CPU.to_owned(),
                Quantity::from_millis(actual.cpu_quota_us.saturating_mul(1000) / actual.cpu_period_us),
            );
        }
    }
    if actual.memory_limit_bytes > 0 && limits.get(MEMORY).map(|q| q.value()) != Some(actual.memory_limit_bytes) {
        limits.insert(MEMORY.to_owned(), Quantity::from_bytes(actual.memory_limit_bytes));
    }
}

/// Thousandths of a core that these shares stand for, rounded up.
fn milli_of_shares(shares: i64) -> i64 {
    shares.saturating_mul(1000).saturating_add(1023) / 1024
}

fn shares(milli_cpu: i64) -> i64 {
    (milli_cpu.saturating_mul(1024) / 1000).clamp(MIN_SHARES, 262_144)
}

fn figures(requests: &ResourceList, limits: &ResourceList, allocated: &ResourceList) -> Figures {
    let api = |list: &ResourceList| {
        let list: ApiList = list.iter().map(|(name, q)| (name.clone(), q.to_api())).collect();
        (!list.is_empty()).then_some(list)
    };
    Figures {
        in_force: ResourceRequirements { requests: api(requests), limits: api(limits), claims: None },
        allocated: api(allocated),
    }
}
