//! CRI messages as observations.

use std::collections::BTreeMap;
use std::sync::Arc;

use cri_api::v1;
use model::pod::CONFIG_SOURCE;
use model::runtime::{ContainerObservation, ContainerState, MountPoint, RuntimeResources, SandboxObservation};
use model::{SandboxId, Timestamp};

/// Label with the pod's UID. What lacks it was not made for a pod of this node, and is none of our business.
pub(crate) const UID_LABEL: &str = "io.kubernetes.pod.uid";
const NAME_LABEL: &str = "io.kubernetes.pod.name";
const NAMESPACE_LABEL: &str = "io.kubernetes.pod.namespace";
const CONTAINER_LABEL: &str = "io.kubernetes.container.name";
const HASH: &str = "io.kubernetes.container.hash";
const RESTART_COUNT: &str = "io.kubernetes.container.restartCount";

/// Labels of the CRI.
pub(crate) type Labels = BTreeMap<String, String>;

/// UID in the labels of a sandbox or container.
pub(crate) fn uid(labels: &Labels) -> Option<&str> {
    labels.get(UID_LABEL).map(String::as_str).filter(|u| !u.is_empty())
}

/// Namespace and name in the labels.
#[must_use]
pub fn names(labels: &Labels) -> Option<(String, String)> {
    Some((labels.get(NAMESPACE_LABEL)?.clone(), labels.get(NAME_LABEL)?.clone()))
}

/// A state by its number; numbers that we do not know are `Unknown`.
pub(crate) fn state(number: i32) -> ContainerState {
    match v1::ContainerState::try_from(number) {
        Ok(v1::ContainerState::ContainerCreated) => ContainerState::Created,
        Ok(v1::ContainerState::ContainerRunning) => ContainerState::Running,
        Ok(v1::ContainerState::ContainerExited) => ContainerState::Exited,
        Ok(v1::ContainerState::ContainerUnknown) | Err(_) => ContainerState::Unknown,
    }
}

pub(crate) fn is_ready(number: i32) -> bool {
    number == i32::from(v1::PodSandboxState::SandboxReady)
}

/// A sandbox as the runtime tells of it.
#[must_use]
pub fn sandbox(s: v1::PodSandboxStatus) -> SandboxObservation {
    let options = s.linux.and_then(|l| l.namespaces).and_then(|n| n.options);
    let ips = s.network.map(|n| {
        let more = n.additional_ips.into_iter().map(|i| i.ip);
        std::iter::once(n.ip).chain(more).collect()
    });
    SandboxObservation {
        id: s.id.into(),
        attempt: s.metadata.map_or(0, |m| m.attempt),
        ready: is_ready(s.state),
        created_at: Timestamp(s.created_at),
        host_network: options.map(|o| o.network == i32::from(v1::NamespaceMode::Node)),
        ips,
        runtime_handler: s.runtime_handler,
        config_source: s.annotations.get(CONFIG_SOURCE).cloned().unwrap_or_default(),
    }
}

/// A container as the runtime tells of it. `message` is the termination message, already made up of all its sources.
#[must_use]
pub fn container(s: v1::ContainerStatus, sandbox: SandboxId, message: String) -> ContainerObservation {
    let meta = s.metadata.unwrap_or_default();
    let name = s.labels.get(CONTAINER_LABEL).cloned().unwrap_or(meta.name);
    let restart_count = s.annotations.get(RESTART_COUNT).and_then(|c| c.parse().ok()).unwrap_or(meta.attempt);
    let hash = s.annotations.get(HASH).and_then(|h| u64::from_str_radix(h, 16).ok());
    let mounts = s.mounts.into_iter().map(|m| MountPoint { container_path: m.container_path, host_path: m.host_path });
    ContainerObservation {
        id: s.id.into(),
        name,
        sandbox,
        state: state(s.state),
        created_at: Timestamp(s.created_at),
        started_at: Timestamp(s.started_at),
        finished_at: Timestamp(s.finished_at),
        exit_code: s.exit_code,
        image: s.image.map(|i| i.image).unwrap_or_default(),
        image_ref: s.image_ref,
        reason: s.reason,
        message,
        restart_count,
        hash,
        mounts: mounts.collect(),
        annotations: Arc::new(s.annotations),
        log_path: s.log_path,
        resources: s.resources.and_then(|r| r.linux).map(|r| resources(&r)),
        user: s.user.and_then(|u| u.linux).map(|u| (u.uid, u.gid, u.supplemental_groups)),
    }
}

fn resources(r: &v1::LinuxContainerResources) -> RuntimeResources {
    RuntimeResources {
        cpu_shares: r.cpu_shares,
        cpu_quota_us: r.cpu_quota,
        cpu_period_us: r.cpu_period,
        memory_limit_bytes: r.memory_limit_in_bytes,
    }
}

#[cfg(test)]
mod tests;
