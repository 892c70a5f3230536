//! Why a config cannot be made.

use crate::devices::DeviceError;
use crate::env::EnvError;
use crate::hostname::HostNameError;
use crate::mounts::MountError;
use crate::security::SecurityError;

/// A config cannot be generated. For a container the waiting reason is `CreateContainerConfigError`, for a sandbox the
/// start fails with `CreatePodSandboxError`; the text is the message that users see.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Environment of the container.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// Host name of the pod.
    #[error(transparent)]
    HostName(#[from] HostNameError),
    /// Raw volumes of the container.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Mounts of the container.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// Security context.
    #[error(transparent)]
    Security(#[from] SecurityError),
}
