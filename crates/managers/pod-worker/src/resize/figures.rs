//! Pure: figures of a resize.

use cgroup_values::cri;
use contract::cgroup::PodCgroupUse;
use model::allocation::Amounts;
use model::core::{Container, Pod};
use model::resources::CgroupValues;
use model::runtime::ContainerObservation;
use pod_plan::Resize;

use crate::deps::Config;

/// What a container has by the runtime's word, where that is not what it shall have. A request of memory, which the runtime does
/// not show, is as it was recorded, or counts as met.
pub(super) fn amounts_in_force(
    pod: &Pod,
    c: &Container,
    seen: &ContainerObservation,
    recorded: Option<Amounts>,
    config: &Config,
) -> Option<Amounts> {
    let actual = seen.resources.as_ref()?;
    let wanted = cri::container_resources(pod, c, &config.facts, &config.rules);
    let mut out = Amounts::of(pod, c);
    out.memory_request_bytes = recorded.map_or(out.memory_request_bytes, |r| r.memory_request_bytes);
    if actual.cpu_shares > 0 && actual.cpu_shares != wanted.cpu_shares {
        out.cpu_request_milli = actual.cpu_shares.saturating_mul(1000).saturating_add(1023) / 1024;
    }
    if actual.cpu_quota_us > 0 && actual.cpu_period_us > 0 && actual.cpu_quota_us != wanted.cpu_quota {
        out.cpu_limit_milli = actual.cpu_quota_us.saturating_mul(1000) / actual.cpu_period_us;
    }
    if actual.memory_limit_bytes > 0 && actual.memory_limit_bytes != wanted.memory_limit_in_bytes {
        out.memory_limit_bytes = actual.memory_limit_bytes;
    }
    Some(out)
}

/// Whether the runtime shows all that the container shall have, and showed something else when it had what it `was` granted: a
/// resize that was carried out before the daemon could write that down.
pub(super) fn is_in_force(
    pod: &Pod,
    c: &Container,
    seen: &ContainerObservation,
    was: Amounts,
    config: &Config,
) -> bool {
    let wanted = Amounts { memory_request_bytes: 0, ..Amounts::of(pod, c) };
    let visible = |amounts: Amounts| Amounts { memory_request_bytes: 0, ..amounts };
    let now = amounts_in_force(pod, c, seen, None, config).map(visible);
    now == Some(wanted) && visible(was) != wanted
}

/// Refuses limits of memory that are in use already: the kernel would end somebody.
pub(super) fn limits_too_low(plan: &Resize, used: &PodCgroupUse, wanted: &CgroupValues) -> Result<(), String> {
    let of_running = !plan.memory.is_empty() || plan.restarts;
    if !of_running && !plan.pod {
        return Ok(());
    }
    let mut errors = Vec::new();
    let now = used.values.memory_limit_bytes.filter(|n| *n >= 0);
    if let Some(limit) = wanted.memory_limit_bytes.filter(|limit| now.is_none_or(|now| *limit < now)) {
        match used.memory_bytes {
            None if of_running => errors.push("missing pod memory usage".to_owned()),
            None => {}
            Some(bytes) if bytes >= u64::try_from(limit).unwrap_or(0) => {
                errors.push(format!("attempting to set pod memory limit ({limit}) below current usage ({bytes})"))
            }
            Some(_) => {}
        }
    }
    for one in &plan.memory {
        let (from, to) = (one.actuated.memory_limit_bytes, one.wanted.memory_limit_bytes);
        if to == 0 || (from != 0 && to >= from) {
            continue;
        }
        let own = used.children.iter().find(|(name, _)| name.contains(one.id.as_str()));
        let name = &one.name;
        match own.map(|(_, bytes)| *bytes) {
            // It has ended, or the runtime puts it elsewhere: the pod as a whole is looked at.
            None => {}
            Some(None) => errors.push(format!("missing container \"{name}\" memory usage")),
            Some(Some(bytes)) if bytes >= u64::try_from(to).unwrap_or(0) => errors.push(format!(
                "attempting to set container \"{name}\" memory limit ({to}) below current usage ({bytes})"
            )),
            Some(Some(_)) => {}
        }
    }
    match &*errors {
        [] => Ok(()),
        [one] => Err(format!("cannot decrease memory limits: {one}")),
        several => Err(format!("cannot decrease memory limits: [{}]", several.join(", "))),
    }
}

#[cfg(test)]
mod tests;
