//! Security contexts: what the pod asks for, the container overrides, and the node defaults (pod-lifecycle 5.8, 5.9).

mod error;
mod namespaces;
mod profile;

use cri_api::v1::{
    Capability, Int64Value, LinuxContainerSecurityContext, LinuxSandboxSecurityContext, SeLinuxOption, SecurityProfile,
    SupplementalGroupsPolicy, security_profile::ProfileType,
};
use model::core::{Container, Pod, PodSecurityContext, SELinuxOptions, SecurityContext};
use model::pod;
use model::userns::UserNamespace;

use crate::NodeSettings;

pub use error::SecurityError;
pub(crate) use namespaces::mappings;
pub use namespaces::{namespace_options, user_namespace};
use profile::pod_context;

/// User of an image, as the runtime's `ImageStatus` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageUser {
    /// Numeric user.
    pub uid: Option<i64>,
    /// Name; looked at when there is no number.
    pub username: String,
}

impl ImageUser {
    /// The numeric user; an image that says nothing runs as root.
    fn numeric(&self) -> Option<i64> {
        self.uid.or(if self.username.is_empty() { Some(0) } else { None })
    }
}

const MASKED_PATHS: [&str; 12] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];
const READONLY_PATHS: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// The container's context with what it leaves open filled from the pod's.
#[must_use]
pub fn effective(pod: &Pod, container: &Container) -> SecurityContext {
    let mut out = container.security_context.clone().unwrap_or_default();
    if let Some(pod) = pod_context(pod) {
        out.run_as_user = out.run_as_user.or(pod.run_as_user);
        out.run_as_group = out.run_as_group.or(pod.run_as_group);
        out.run_as_non_root = out.run_as_non_root.or(pod.run_as_non_root);
        out.se_linux_options = out.se_linux_options.or_else(|| pod.se_linux_options.clone());
    }
    out
}

fn verify_non_root(
    context: &SecurityContext,
    pod: &Pod,
    container: &Container,
    image: &ImageUser,
) -> Result<(), SecurityError> {
    if context.run_as_non_root != Some(true) {
        return Ok(());
    }
    let (pod, container) = (pod::describe(pod), container.name.clone());
    match (context.run_as_user, image.numeric()) {
        (Some(0), _) => Err(SecurityError::RootUser { pod, container }),
        (Some(_), _) => Ok(()),
        (None, Some(0)) => Err(SecurityError::RootImage { pod, container }),
        (None, Some(_)) => Ok(()),
        (None, None) => Err(SecurityError::NamedUser { user: image.username.clone(), pod, container }),
    }
}

fn int64(value: i64) -> Int64Value {
    Int64Value { value }
}

fn selinux(options: &SELinuxOptions) -> SeLinuxOption {
    SeLinuxOption {
        user: options.user.clone().unwrap_or_default(),
        role: options.role.clone().unwrap_or_default(),
        r#type: options.type_.clone().unwrap_or_default(),
        level: options.level.clone().unwrap_or_default(),
    }
}

/// A policy word that is unknown counts as Merge, the API's default.
fn groups_policy(context: &PodSecurityContext) -> i32 {
    match context.supplemental_groups_policy.as_deref() {
        Some("Strict") => SupplementalGroupsPolicy::Strict.into(),
        _ => SupplementalGroupsPolicy::Merge.into(),
    }
}

/// Whether any container of the pod, of any kind, is privileged.
#[must_use]
pub fn has_privileged_container(pod: &Pod) -> bool {
    let privileged = |c: &Container| c.security_context.as_ref().and_then(|s| s.privileged) == Some(true);
    pod::regular_containers(pod).iter().chain(pod::init_containers(pod)).any(privileged)
        || pod::ephemeral_containers(pod).any(|(c, _)| privileged(&c))
}

/// Context of the sandbox. Without a pod-level context nothing but privilege and seccomp is sent, the runtime's zero
/// values then stand for the namespaces.
#[must_use]
pub fn sandbox_context(pod: &Pod, userns: Option<UserNamespace>, volume_groups: &[i64]) -> LinuxSandboxSecurityContext {
    let mut out = LinuxSandboxSecurityContext {
        privileged: has_privileged_container(pod),
        seccomp: Some(SecurityProfile { profile_type: ProfileType::RuntimeDefault.into(), ..Default::default() }),
        ..Default::default()
    };
    if let Some(context) = pod_context(pod) {
        out.run_as_user = context.run_as_user.map(int64);
        out.run_as_group = context.run_as_group.map(int64);
        out.namespace_options = Some(namespace_options(pod, userns, None));
        out.supplemental_groups.extend(context.fs_group);
        out.supplemental_groups.extend(volume_groups);
        out.supplemental_groups.extend(context.supplemental_groups.iter().flatten());
        out.supplemental_groups_policy = groups_policy(context);
        out.selinux_options = context.se_linux_options.as_ref().map(selinux);
    }
    out
}

/// Context of [`container_context`].
#[derive(Clone, Copy, Debug)]
pub struct ContextInput<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// The container.
    pub container: &'a Container,
    /// Node-wide settings.
    pub node: &'a NodeSettings,
    /// User of the image.
    pub image_user: &'a ImageUser,
    /// The pod's user namespace.
    pub userns: Option<UserNamespace>,
    /// Groups that volumes bring along.
    pub volume_groups: &'a [i64],
    /// Container id whose process namespace an ephemeral container joins.
    pub target: Option<&'a str>,
}

/// Context of a container.
///
/// # Errors
/// When `runAsNonRoot` cannot be kept, or a localhost profile has no name.
#[allow(deprecated, reason = "older runtimes read the legacy AppArmor string only, so both forms are sent")]
pub fn container_context(input: &ContextInput<'_>) -> Result<LinuxContainerSecurityContext, SecurityError> {
    let ContextInput { pod, container, node, image_user, userns, volume_groups, target } = *input;
    let context = effective(pod, container);
    verify_non_root(&context, pod, container, image_user)?;
    let mut out = LinuxContainerSecurityContext {
        privileged: context.privileged.unwrap_or_default(),
        readonly_rootfs: context.read_only_root_filesystem.unwrap_or_default(),
        no_new_privs: context.allow_privilege_escalation == Some(false),
        run_as_user: context.run_as_user.map(int64),
        run_as_group: context.run_as_group.map(int64),
        selinux_options: context.se_linux_options.as_ref().map(selinux),
        capabilities: context.capabilities.as_ref().map(|c| Capability {
            add_capabilities: c.add.clone().unwrap_or_default(),
            drop_capabilities: c.drop.clone().unwrap_or_default(),
            ..Default::default()
        }),
        seccomp: Some(profile::seccomp(pod, container, node)?),
        namespace_options: Some(namespace_options(pod, userns, target)),
        ..Default::default()
    };
    if let Some(apparmor) = profile::app_armor(pod, container)? {
        out.apparmor_profile = apparmor.legacy;
        out.apparmor = Some(apparmor.profile);
    }
    if out.run_as_user.is_none() {
        out.run_as_user = image_user.numeric().map(int64);
        if out.run_as_user.is_none() {
            out.run_as_username.clone_from(&image_user.username);
        }
    }
    if context.proc_mount.as_deref() != Some("Unmasked") {
        out.masked_paths = MASKED_PATHS.iter().map(|&p| p.to_owned()).collect();
        out.masked_paths.extend(node.thermal_throttle_paths.iter().cloned());
        out.readonly_paths = READONLY_PATHS.iter().map(|&p| p.to_owned()).collect();
    }
    if let Some(context) = pod_context(pod) {
        out.supplemental_groups.extend(context.fs_group);
        out.supplemental_groups.extend(context.supplemental_groups.iter().flatten());
        out.supplemental_groups_policy = groups_policy(context);
    }
    out.supplemental_groups.extend(volume_groups);
    Ok(out)
}

#[cfg(test)]
mod tests;
