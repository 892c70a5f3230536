//! The security context of a container.

use cri_api::v1;

/// Whether a container is privileged.
pub(crate) fn is_privileged(config: &v1::ContainerConfig) -> bool {
    security(config).is_some_and(|s| s.privileged)
}

/// The security context of a container.
pub(crate) fn security(config: &v1::ContainerConfig) -> Option<&v1::LinuxContainerSecurityContext> {
    config.linux.as_ref()?.security_context.as_ref()
}
