//! Requests and limits.

use std::collections::{BTreeMap, BTreeSet};

use model::core::{Container, Pod, PodSpec, ResourceRequirements};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use model::quantity::Quantity;
use model::resources::{CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY, is_pod_level_resource, pod_requests};

use super::faults::Faults;
use super::names::Rule;

pub(super) fn container(path: &str, c: &Container, faults: &mut Faults) {
    if let Some(r) = &c.resources {
        let path = format!("{path}.resources");
        requirements(&path, r, faults);
        let mut seen = BTreeSet::new();
        for list in ["limits", "requests"] {
            for name in names(r, list).filter(|n| seen.insert(n.to_string())) {
                resource_name(&format!("{path}.{list}[{name}]"), name, faults);
            }
        }
    }
    let mut seen = BTreeSet::new();
    for (i, policy) in c.resize_policy.iter().flatten().enumerate() {
        let path = format!("{path}.resizePolicy[{i}]");
        faults.one_of(format!("{path}.resourceName"), &policy.resource_name, &[CPU, MEMORY]);
        faults.one_of(format!("{path}.restartPolicy"), &policy.restart_policy, &["NotRequired", "RestartContainer"]);
        if !seen.insert(&policy.resource_name) {
            let at = format!("{path}.resourceName");
            faults.duplicate(at, policy.resource_name.as_str(), "another policy names the same resource");
        }
    }
}

/// `spec.resources` (KEP-2837) and `spec.overhead`.
pub(super) fn pod_level(pod: &Pod, spec: &PodSpec, faults: &mut Faults) {
    if let Some(overhead) = &spec.overhead {
        amounts("spec.overhead", overhead, faults);
    }
    let Some(r) = &spec.resources else { return };
    requirements("spec.resources", r, faults);
    for list in ["limits", "requests"] {
        for name in names(r, list).filter(|n| !is_pod_level_resource(n)) {
            let at = format!("spec.resources.{list}[{name}]");
            faults.one_of(at, name, &[CPU, MEMORY, "hugepages-SIZE"]);
        }
    }
    if r.claims.as_ref().is_some_and(|c| !c.is_empty()) {
        faults.forbidden("spec.resources.claims", "claims may not be set for the pod as a whole");
    }
    containers_fit(pod, spec, r, faults);
}

/// What containers ask for must fit into what the pod asks for.
fn containers_fit(pod: &Pod, spec: &PodSpec, r: &ResourceRequirements, faults: &mut Faults) {
    let mut bare = pod.clone();
    if let Some(s) = &mut bare.spec {
        s.resources = None;
        s.overhead = None;
    }
    let asked = pod_requests(&bare);
    for (name, amount) in r.requests.iter().flatten() {
        let (Ok(pod_request), Some(asked)) = (Quantity::try_from(amount), asked.get(name)) else { continue };
        if pod_request < *asked {
            let reason = format!("is less than the {asked} that the containers request together");
            faults.invalid(format!("spec.resources.requests[{name}]"), amount.0.as_str(), reason);
        }
    }
    let lists =
        [("spec.initContainers", spec.init_containers.as_deref()), ("spec.containers", Some(&*spec.containers))];
    for (list, containers) in lists {
        for (i, c) in containers.unwrap_or_default().iter().enumerate() {
            let limits = c.resources.iter().flat_map(|r| r.limits.iter().flatten());
            for (name, limit) in limits {
                let pod_limit = r.limits.as_ref().and_then(|l| l.get(name)).map(Quantity::try_from);
                if let (Ok(limit), Some(Ok(pod_limit))) = (Quantity::try_from(limit), pod_limit)
                    && limit > pod_limit
                {
                    let at = format!("{list}[{i}].resources.limits[{name}]");
                    faults.invalid(at, limit.to_string(), format!("is more than the pod's limit of {pod_limit}"));
                }
            }
        }
    }
}

fn names<'r>(r: &'r ResourceRequirements, list: &str) -> impl Iterator<Item = &'r str> {
    let map = if list == "limits" { &r.limits } else { &r.requests };
    map.iter().flat_map(|m| m.keys()).map(String::as_str)
}

fn resource_name(path: &str, name: &str, faults: &mut Faults) {
    let standard = matches!(name, CPU | MEMORY | EPHEMERAL_STORAGE);
    if standard || name.starts_with(HUGEPAGES_PREFIX) {
        return;
    }
    faults.name(path, name, Rule::Qualified);
    if !name.contains('/') {
        faults.one_of(path, name, &[CPU, MEMORY, EPHEMERAL_STORAGE, "hugepages-SIZE", "DOMAIN/NAME"]);
    }
}

/// Neither a standard resource nor one of Kubernetes' own domain.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/")
}

fn amounts(path: &str, list: &BTreeMap<String, ApiQuantity>, faults: &mut Faults) -> BTreeMap<String, Quantity> {
    let mut parsed = BTreeMap::new();
    for (name, amount) in list {
        let at = format!("{path}[{name}]");
        let q = match Quantity::try_from(amount) {
            Ok(q) => q,
            Err(e) => {
                faults.invalid(at, amount.0.as_str(), e.to_string());
                continue;
            }
        };
        if q.is_negative() {
            faults.invalid(at.as_str(), amount.0.as_str(), "must be 0 or more");
        }
        if is_extended(name) && q.nanos() % Quantity::from_units(1).nanos() != 0 {
            faults.invalid(at.as_str(), amount.0.as_str(), "must be a whole number");
        }
        if let Some(size) = name.strip_prefix(HUGEPAGES_PREFIX) {
            huge_page(&at, size, q, faults);
        }
        parsed.insert(name.clone(), q);
    }
    parsed
}

fn huge_page(path: &str, size: &str, amount: Quantity, faults: &mut Faults) {
    match size.parse::<Quantity>() {
        Ok(page) if page.nanos() > 0 => {
            if amount.nanos() % page.nanos() != 0 {
                faults.invalid(path, amount.to_string(), format!("is not a multiple of the page size {size}"));
            }
        }
        _ => faults.invalid(path, size, "is not a page size"),
    }
}

fn requirements(path: &str, r: &ResourceRequirements, faults: &mut Faults) {
    let empty = BTreeMap::new();
    let limits = amounts(&format!("{path}.limits"), r.limits.as_ref().unwrap_or(&empty), faults);
    // A request that was taken over from its limit has been looked at already.
    let limit = |name: &str| r.limits.as_ref().and_then(|l| l.get(name));
    let mut own = r.requests.clone().unwrap_or_default();
    own.retain(|name, amount| limit(name) != Some(amount));
    let requests = amounts(&format!("{path}.requests"), &own, faults);
    for (name, request) in &requests {
        let at = format!("{path}.requests[{name}]");
        let exact = is_extended(name) || name.starts_with(HUGEPAGES_PREFIX);
        match limits.get(name) {
            Some(limit) if exact && request != limit => {
                faults.invalid(at, request.to_string(), format!("must equal the limit of {limit}"));
            }
            Some(limit) if request > limit => {
                faults.invalid(at, request.to_string(), format!("must be less than or equal to the limit of {limit}"));
            }
            None if exact && r.limits.as_ref().is_none_or(|l| !l.contains_key(name)) => {
                faults.required(format!("{path}.limits[{name}]"), "this resource cannot be requested without a limit");
            }
            _ => {}
        }
    }
    let has = |name: &str| limits.contains_key(name) || requests.contains_key(name);
    let huge = limits.keys().chain(requests.keys()).any(|n| n.starts_with(HUGEPAGES_PREFIX));
    if huge && !has(CPU) && !has(MEMORY) {
        faults.forbidden(path, "huge pages need cpu or memory beside them");
    }
}
