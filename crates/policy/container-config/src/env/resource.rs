//! Resources of the downward API, for variables and for files.

use std::collections::BTreeMap;

use model::core::{Container, Pod, ResourceFieldSelector, ResourceRequirements};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use model::pod;
use model::quantity::Quantity;

/// A resource that the downward API does not have here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    /// No such resource.
    #[error("unsupported container resource : {0}")]
    Unsupported(String),
    /// The selector names a container that the pod does not have.
    #[error("container {0} not found")]
    NoContainer(String),
    /// The amount or the divisor is not a quantity.
    #[error("invalid quantity {0:?}")]
    Quantity(String),
}

/// Resources for which the node stands in when a container has no limit; huge pages are never overcommitted.
const DEFAULTED: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

fn parse(q: &ApiQuantity) -> Result<Quantity, ResourceError> {
    q.0.parse().map_err(|_| ResourceError::Quantity(q.0.clone()))
}

fn is_set(list: Option<&BTreeMap<String, ApiQuantity>>, name: &str) -> bool {
    list.and_then(|l| l.get(name)).is_some_and(|q| parse(q).is_ok_and(|q| !q.is_zero()))
}

/// Resources of a container with every missing limit taken from the pod's own limits, else from the node's allocatable.
#[must_use]
pub fn with_default_limits(
    container: &Container,
    pod: &Pod,
    allocatable: &BTreeMap<String, ApiQuantity>,
) -> ResourceRequirements {
    let mut resources = container.resources.clone().unwrap_or_default();
    let pod_limits = pod.spec.as_ref().and_then(|s| s.resources.as_ref()).and_then(|r| r.limits.as_ref());
    for name in DEFAULTED {
        if is_set(resources.limits.as_ref(), name) {
            continue;
        }
        let from = if is_set(pod_limits, name) { pod_limits } else { Some(allocatable) };
        if let Some(limit) = from.and_then(|l| l.get(name)) {
            resources.limits.get_or_insert_default().insert(name.to_owned(), limit.clone());
        }
    }
    resources
}

fn is_resource(name: &str) -> bool {
    DEFAULTED.contains(&name) || name.starts_with("hugepages-")
}

/// Amount over divisor, rounded up. CPU counts in thousandths, so that a divisor of `1m` gives millicores.
fn divide(name: &str, amount: Quantity, divisor: Quantity) -> i64 {
    let (amount, divisor) = match (name, divisor.is_zero()) {
        ("cpu", true) => (amount.milli_value(), 1000),
        ("cpu", false) => (amount.milli_value(), divisor.milli_value()),
        (_, true) => (amount.value(), 1),
        (_, false) => (amount.value(), divisor.value()),
    };
    let whole = amount / divisor;
    if amount % divisor > 0 { whole + 1 } else { whole }
}

/// Value of a `resourceFieldRef`: of the container it names, else of `own`.
///
/// # Errors
/// An unknown container, resource or quantity.
pub fn container_resource(
    selector: &ResourceFieldSelector,
    pod: &Pod,
    own: Option<&Container>,
    allocatable: &BTreeMap<String, ApiQuantity>,
) -> Result<String, ResourceError> {
    let named = selector.container_name.as_deref().filter(|n| !n.is_empty());
    let found = match named {
        Some(name) => pod::find_container(pod, name).map(|(_, c)| c),
        None => own.cloned(),
    };
    let container = found.ok_or_else(|| ResourceError::NoContainer(named.unwrap_or_default().to_owned()))?;
    let unsupported = || ResourceError::Unsupported(selector.resource.clone());
    let (side, name) = selector.resource.split_once('.').ok_or_else(unsupported)?;
    if !is_resource(name) {
        return Err(unsupported());
    }
    let resources = with_default_limits(&container, pod, allocatable);
    let list = match side {
        "limits" => resources.limits,
        "requests" => resources.requests,
        _ => return Err(unsupported()),
    };
    let amount = list.as_ref().and_then(|l| l.get(name)).map(parse).transpose()?.unwrap_or(Quantity::ZERO);
    let divisor = selector.divisor.as_ref().map(parse).transpose()?.unwrap_or(Quantity::ZERO);
    Ok(divide(name, amount, divisor).to_string())
}

#[cfg(test)]
mod tests;
