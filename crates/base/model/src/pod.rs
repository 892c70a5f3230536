//! Questions about a pod's specification that many layers ask.

use crate::PodUid;
use crate::core::{Container, Pod};

/// Annotation: which source a pod came from (`file`, `http`, `api`).
pub const CONFIG_SOURCE: &str = "kubernetes.io/config.source";
/// Annotation: when this node first saw the pod (RFC 3339, nanoseconds).
pub const CONFIG_SEEN: &str = "kubernetes.io/config.seen";
/// Annotation: hash of a static pod's manifest, equal to its UID.
pub const CONFIG_HASH: &str = "kubernetes.io/config.hash";
/// Annotation: present on mirror pods, value of [`CONFIG_HASH`].
pub const CONFIG_MIRROR: &str = "kubernetes.io/config.mirror";
/// Label on sandboxes and containers: pod name.
pub const LABEL_POD_NAME: &str = "io.kubernetes.pod.name";
/// Label on sandboxes and containers: pod namespace.
pub const LABEL_POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
/// Label on sandboxes and containers: pod UID.
pub const LABEL_POD_UID: &str = "io.kubernetes.pod.uid";
/// Label on containers: container name.
pub const LABEL_CONTAINER_NAME: &str = "io.kubernetes.container.name";
/// Lowest priority of a critical pod (system-cluster-critical).
pub const SYSTEM_CRITICAL_PRIORITY: i32 = 2_000_000_000;

/// Role of a container in its pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
pub enum ContainerKind {
    /// Runs to completion before the regular ones.
    Init,
    /// Restartable init container (KEP-753).
    Sidecar,
    /// Listed in `spec.containers`.
    Regular,
    /// Added to a running pod for debugging; never restarted.
    Ephemeral,
}

impl ContainerKind {
    /// Event field path prefix: `spec.containers`, `spec.initContainers`, `spec.ephemeralContainers`.
    #[must_use]
    pub const fn field_path(self) -> &'static str {
        match self {
            ContainerKind::Init | ContainerKind::Sidecar => "spec.initContainers",
            ContainerKind::Regular => "spec.containers",
            ContainerKind::Ephemeral => "spec.ephemeralContainers",
        }
    }
}

/// Pod-level restart policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RestartPolicy {
    /// Restart whatever the exit code.
    Always,
    /// Restart on a non-zero exit code.
    OnFailure,
    /// Never restart.
    Never,
}

impl RestartPolicy {
    /// Parses the API word; anything unknown or absent is `Always`, the API default.
    #[must_use]
    pub fn parse(s: Option<&str>) -> Self {
        match s {
            Some("OnFailure") => Self::OnFailure,
            Some("Never") => Self::Never,
            _ => Self::Always,
        }
    }
}

/// Name of the pod, empty when absent.
#[must_use]
pub fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// Namespace of the pod, empty when absent.
#[must_use]
pub fn namespace(pod: &Pod) -> &str {
    pod.metadata.namespace.as_deref().unwrap_or_default()
}

/// UID of the pod.
#[must_use]
pub fn uid(pod: &Pod) -> PodUid {
    PodUid::from(pod.metadata.uid.as_deref().unwrap_or_default())
}

/// `<name>_<namespace>`: static and mirror pods are paired by it.
#[must_use]
pub fn full_name(pod: &Pod) -> String {
    full_name_of(name(pod), namespace(pod))
}

pub(crate) fn full_name_of(name: &str, namespace: &str) -> String {
    format!("{name}_{namespace}")
}

/// `<namespace>/<name>`, as people name a pod (`types.NamespacedName`).
#[must_use]
pub fn namespaced_name(pod: &Pod) -> String {
    format!("{}/{}", namespace(pod), name(pod))
}

/// `<name>_<namespace>(<uid>)`, as messages and events name a pod.
#[must_use]
pub fn describe(pod: &Pod) -> String {
    format!("{}_{}({})", name(pod), namespace(pod), pod.metadata.uid.as_deref().unwrap_or_default())
}

/// Notes on a pod which source it came from and when this node first saw it, whatever it says itself.
pub fn stamp(pod: &mut Pod, source: &str, seen: &str) {
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(CONFIG_SOURCE.to_owned(), source.to_owned());
    annotations.insert(CONFIG_SEEN.to_owned(), seen.to_owned());
}

/// Gives back the room that the lists of a pod took while it was read, beyond what they hold: a volume has 3 KB and a container 2 KB,
/// whatever they say, and a list that grew has room for up to twice as many.
pub fn shrink(pod: &mut Pod) {
    let Some(spec) = &mut pod.spec else { return };
    if let Some(volumes) = &mut spec.volumes {
        volumes.shrink_to_fit();
    }
    if let Some(init) = &mut spec.init_containers {
        init.shrink_to_fit();
    }
    spec.containers.shrink_to_fit();
    for c in spec.init_containers.iter_mut().flatten().chain(&mut spec.containers) {
        if let Some(env) = &mut c.env {
            env.shrink_to_fit();
        }
        if let Some(mounts) = &mut c.volume_mounts {
            mounts.shrink_to_fit();
        }
    }
}

/// Value of an annotation.
#[must_use]
pub fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// A mirror pod stands in the API for a static pod; it never runs itself.
#[must_use]
pub fn is_mirror(pod: &Pod) -> bool {
    annotation(pod, CONFIG_MIRROR).is_some()
}

/// A pod that came from a file or a URL.
#[must_use]
pub fn is_static(pod: &Pod) -> bool {
    annotation(pod, CONFIG_SOURCE).is_some_and(|s| s != "api")
}

/// Static, mirror or of system priority: never evicted.
#[must_use]
pub fn is_critical(pod: &Pod) -> bool {
    is_static(pod)
        || is_mirror(pod)
        || pod.spec.as_ref().and_then(|s| s.priority).is_some_and(|p| p >= SYSTEM_CRITICAL_PRIORITY)
}

/// Whether the pod shares the host's network.
#[must_use]
pub fn is_host_network(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|s| s.host_network).unwrap_or(false)
}

/// Pod-level restart policy.
#[must_use]
pub fn restart_policy(pod: &Pod) -> RestartPolicy {
    RestartPolicy::parse(pod.spec.as_ref().and_then(|s| s.restart_policy.as_deref()))
}

/// Whether an init container is a sidecar (`restartPolicy: Always`).
#[must_use]
pub fn is_sidecar(init: &Container) -> bool {
    init.restart_policy.as_deref() == Some("Always")
}

/// Phase in the API copy is Succeeded or Failed.
#[must_use]
pub fn is_terminal_phase(phase: Option<&str>) -> bool {
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether the pod's status says that it has come to its end.
#[must_use]
pub fn is_terminal(pod: &Pod) -> bool {
    is_terminal_phase(pod.status.as_ref().and_then(|s| s.phase.as_deref()))
}

/// Init containers in spec order (sidecars included).
#[must_use]
pub fn init_containers(pod: &Pod) -> &[Container] {
    pod.spec.as_ref().and_then(|s| s.init_containers.as_deref()).unwrap_or_default()
}

/// Regular containers in spec order.
#[must_use]
pub fn regular_containers(pod: &Pod) -> &[Container] {
    pod.spec.as_ref().map(|s| s.containers.as_slice()).unwrap_or_default()
}

/// Ephemeral containers as ordinary containers, in spec order, with the container that each targets.
pub fn ephemeral_containers(pod: &Pod) -> impl Iterator<Item = (Container, Option<String>)> + '_ {
    pod.spec.as_ref().and_then(|s| s.ephemeral_containers.as_deref()).unwrap_or_default().iter().map(|e| {
        let c = Container {
            name: e.name.clone(),
            image: e.image.clone(),
            command: e.command.clone(),
            args: e.args.clone(),
            working_dir: e.working_dir.clone(),
            ports: e.ports.clone(),
            env_from: e.env_from.clone(),
            env: e.env.clone(),
            resources: e.resources.clone(),
            volume_mounts: e.volume_mounts.clone(),
            volume_devices: e.volume_devices.clone(),
            liveness_probe: e.liveness_probe.clone(),
            readiness_probe: e.readiness_probe.clone(),
            startup_probe: e.startup_probe.clone(),
            lifecycle: e.lifecycle.clone(),
            termination_message_path: e.termination_message_path.clone(),
            termination_message_policy: e.termination_message_policy.clone(),
            image_pull_policy: e.image_pull_policy.clone(),
            security_context: e.security_context.clone(),
            stdin: e.stdin,
            stdin_once: e.stdin_once,
            tty: e.tty,
            restart_policy: e.restart_policy.clone(),
            resize_policy: e.resize_policy.clone(),
            restart_policy_rules: e.restart_policy_rules.clone(),
        };
        (c, e.target_container_name.clone())
    })
}

/// Finds a container of any kind by name.
#[must_use]
pub fn find_container(pod: &Pod, name: &str) -> Option<(ContainerKind, Container)> {
    if let Some(c) = regular_containers(pod).iter().find(|c| c.name == name) {
        return Some((ContainerKind::Regular, c.clone()));
    }
    if let Some(c) = init_containers(pod).iter().find(|c| c.name == name) {
        let kind = if is_sidecar(c) { ContainerKind::Sidecar } else { ContainerKind::Init };
        return Some((kind, c.clone()));
    }
    ephemeral_containers(pod).find(|(c, _)| c.name == name).map(|(c, _)| (ContainerKind::Ephemeral, c))
}

/// Seconds of grace that the specification asks for, if any.
#[must_use]
pub fn spec_grace_seconds(pod: &Pod) -> Option<i64> {
    pod.spec.as_ref().and_then(|s| s.termination_grace_period_seconds)
}
