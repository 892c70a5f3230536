//! `PodSandboxConfig` of a pod (pod-lifecycle 5.8).

use std::collections::BTreeMap;

use cri_api::v1::{DnsConfig, LinuxContainerResources, LinuxPodSandboxConfig, PodSandboxConfig, PodSandboxMetadata};
use model::core::Pod;
use model::pod;
use model::userns::UserNamespace;

use crate::hostname::kernel_host_name;
use crate::{ConfigError, NodeSettings, names, ports, security};

/// Context of [`sandbox_config`].
#[derive(Clone, Debug)]
pub struct SandboxInput<'a> {
    /// The pod, defaulted.
    pub pod: &'a Pod,
    /// Node-wide settings.
    pub node: &'a NodeSettings,
    /// Attempt of the sandbox: newest known plus 1, 0 for the first.
    pub attempt: u32,
    /// Result of [`crate::dns_config`].
    pub dns: DnsConfig,
    /// Cgroup of the pod in the driver's notation.
    pub cgroup_parent: String,
    /// Requests and limits of the pod without overhead.
    pub resources: Option<LinuxContainerResources>,
    /// Overhead of the runtime class; sent as an empty message when there is none.
    pub overhead: Option<LinuxContainerResources>,
    /// The pod's user namespace when `hostUsers: false`.
    pub userns: Option<UserNamespace>,
    /// Groups that volumes bring along.
    pub volume_groups: &'a [i64],
}

/// Sysctls with the dotted names that the runtime wants; a `/` is the other spelling of the separator.
fn sysctls(pod: &Pod) -> BTreeMap<String, String> {
    let context = pod.spec.as_ref().and_then(|s| s.security_context.as_ref());
    let list = context.and_then(|c| c.sysctls.as_deref()).unwrap_or_default();
    list.iter().map(|s| (dotted(&s.name), s.value.clone())).collect()
}

/// The first separator of either kind decides which spelling it is: with `/` first, the two change places.
fn dotted(name: &str) -> String {
    match name.find(['.', '/']).map(|at| name.as_bytes()[at]) {
        Some(b'/') => name
            .chars()
            .map(|c| match c {
                '/' => '.',
                '.' => '/',
                c => c,
            })
            .collect(),
        _ => name.to_owned(),
    }
}

/// Configuration of a pod's sandbox. Sent again with each container of it.
///
/// # Errors
/// When the pod's host name cannot be made.
pub fn sandbox_config(input: &SandboxInput<'_>) -> Result<PodSandboxConfig, ConfigError> {
    let pod = input.pod;
    Ok(PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: pod::name(pod).to_owned(),
            namespace: pod::namespace(pod).to_owned(),
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            attempt: input.attempt,
        }),
        hostname: kernel_host_name(pod, &input.node.cluster_domain)?,
        log_directory: names::pod_log_dir(&input.node.pod_logs_dir, pod),
        dns_config: Some(input.dns.clone()),
        port_mappings: ports::port_mappings(pod),
        labels: names::sandbox_labels(pod),
        annotations: names::sandbox_annotations(pod),
        linux: Some(LinuxPodSandboxConfig {
            cgroup_parent: input.cgroup_parent.clone(),
            security_context: Some(security::sandbox_context(pod, input.userns, input.volume_groups)),
            sysctls: sysctls(pod),
            overhead: Some(input.overhead.clone().unwrap_or_default()),
            resources: input.resources.clone(),
        }),
    })
}

#[cfg(test)]
mod tests;
