//! What the machine, the runtime or the gates do not offer (node-and-resources 5.5, 10.7).

use model::core::{AppArmorProfile, Pod};
use model::pod::{init_containers, regular_containers};

use crate::facts::NodeFacts;
use crate::rejection::Rejection;

/// Prefix of the annotation that named a container's profile before there was a field for it.
const APPARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

/// A pod that has run already is not asked again.
pub(crate) fn apparmor(pod: &Pod, node: &NodeFacts) -> Result<(), Rejection> {
    let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref()).unwrap_or_default();
    if !matches!(phase, "" | "Pending") || !wants_apparmor(pod) {
        return Ok(());
    }
    let why = match (node.apparmor, empty_profile(pod)) {
        (false, _) => "AppArmor is not enabled on the host",
        (true, true) => "invalid empty AppArmor profile name",
        (true, false) => return Ok(()),
    };
    Err(Rejection::new("AppArmor", format!("Cannot enforce AppArmor: {why}")))
}

/// Whether a container is to run under a profile of the host that has no name. Whether the kernel has a profile of some name
/// is the runtime's to find out.
fn empty_profile(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let of_pod = spec.security_context.as_ref().and_then(|c| c.app_armor_profile.as_ref());
    let ephemeral = spec.ephemeral_containers.iter().flatten().map(|c| c.security_context.as_ref());
    let contexts = init_containers(pod).iter().chain(regular_containers(pod)).map(|c| c.security_context.as_ref());
    let mut profiles = contexts.chain(ephemeral).map(|c| c.and_then(|c| c.app_armor_profile.as_ref()).or(of_pod));
    profiles.any(|p| {
        p.is_some_and(|p| {
            p.type_ == "Localhost" && p.localhost_profile.as_deref().unwrap_or_default().trim().is_empty()
        })
    })
}

fn wants_apparmor(pod: &Pod) -> bool {
    let confines = |p: Option<&AppArmorProfile>| p.is_some_and(|p| p.type_ != "Unconfined");
    let Some(spec) = &pod.spec else { return false };
    let ephemeral = spec.ephemeral_containers.iter().flatten().map(|c| c.security_context.as_ref());
    let contexts = init_containers(pod).iter().chain(regular_containers(pod)).map(|c| c.security_context.as_ref());
    let annotations = pod.metadata.annotations.iter().flatten();
    confines(spec.security_context.as_ref().and_then(|c| c.app_armor_profile.as_ref()))
        || contexts.chain(ephemeral).flatten().any(|c| confines(c.app_armor_profile.as_ref()))
        || annotations
            .into_iter()
            .any(|(k, v)| k.starts_with(APPARMOR_ANNOTATION) && v != "unconfined" && !v.is_empty())
}

pub(crate) fn pod_level(pod: &Pod, node: &NodeFacts) -> Result<(), Rejection> {
    if node.pod_level_resources || model::resources::pod_level(pod).is_none() {
        return Ok(());
    }
    Err(Rejection::new("PodLevelResourcesNotSupported", "PodLevelResources feature gate is disabled"))
}

/// Features that the pod cannot do without must be among those that the node declares.
pub(crate) fn declared(pod: &Pod, node: &NodeFacts) -> Result<(), Rejection> {
    let Some(declared) = &node.declared_features else { return Ok(()) };
    let missing: Vec<_> = needed(pod).into_iter().filter(|f| !declared.iter().any(|d| d == f)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!("Pod requires node features that are not available: {}", missing.join(", "));
    Err(Rejection::new("PodFeatureUnsupported", text))
}

/// Declared features that a new pod needs, sorted. The others only matter for changes of a running pod.
fn needed(pod: &Pod) -> Vec<&'static str> {
    let containers = init_containers(pod).iter().chain(regular_containers(pod));
    let mut rules = containers.flat_map(|c| c.restart_policy_rules.iter().flatten());
    let spec = pod.spec.as_ref();
    let own_users_on_host_network = spec.is_some_and(|s| s.host_users == Some(false) && s.host_network == Some(true));
    [
        ("RestartAllContainersOnContainerExits", rules.any(|r| r.action == "RestartAllContainers")),
        ("UserNamespacesHostNetworkSupport", own_users_on_host_network),
    ]
    .into_iter()
    .filter_map(|(feature, needed)| needed.then_some(feature))
    .collect()
}
