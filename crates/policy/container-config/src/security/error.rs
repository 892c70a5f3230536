//! Why a container must not start.

/// A container that must not start as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecurityError {
    /// `runAsNonRoot` and `runAsUser: 0`.
    #[error("container's runAsUser breaks non-root policy (pod: {pod:?}, container: {container})")]
    RootUser {
        /// The pod as messages name it.
        pod: String,
        /// Name of the container.
        container: String,
    },
    /// `runAsNonRoot` and an image of uid 0, or of no user at all.
    #[error("container has runAsNonRoot and image will run as root (pod: {pod:?}, container: {container})")]
    RootImage {
        /// The pod as messages name it.
        pod: String,
        /// Name of the container.
        container: String,
    },
    /// `runAsNonRoot` and an image whose user is a name.
    #[error(
        "container has runAsNonRoot and image has non-numeric user ({user}), cannot verify user is non-root (pod: {pod:?}, container: {container})"
    )]
    NamedUser {
        /// The image's user.
        user: String,
        /// The pod as messages name it.
        pod: String,
        /// Name of the container.
        container: String,
    },
    /// A localhost seccomp profile without a name.
    #[error("localhostProfile must be set if seccompProfile type is Localhost.")]
    NoSeccompName,
    /// A localhost AppArmor profile without a name.
    #[error("missing localhost apparmor profile name")]
    NoAppArmorName,
}
