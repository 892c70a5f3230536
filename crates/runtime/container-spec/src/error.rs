//! Why a container's config cannot be carried out.

/// A config that no spec can be made of. The texts go to whoever asked for the container.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SpecError {
    /// Neither config nor image says what to run.
    #[error("no command specified")]
    NoCommand,
    /// A value that OCI runtimes cannot be told.
    #[error("the value of environment variable {0:?} is not UTF-8")]
    EnvNotText(String),
    /// A privileged container in a pod that is not.
    #[error("no privileged container allowed in sandbox")]
    PrivilegedInPlainPod,
    /// A user name that the image's `/etc/passwd` does not have.
    #[error("no user {0:?} in the image's /etc/passwd")]
    UnknownUser(String),
    /// A group name that the image's `/etc/group` does not have.
    #[error("no group {0:?} in the image's /etc/group")]
    UnknownGroup(String),
    /// A number that is no user or group id.
    #[error("{0} is no user or group id")]
    BadId(i64),
    /// `run_as_group` without a user.
    #[error("user group is specified without user")]
    GroupWithoutUser,
    /// A policy for supplemental groups that this runtime does not know.
    #[error("supplemental groups policy {0} is not known")]
    GroupsPolicy(i32),
    /// A capability that this runtime does not know.
    #[error("unknown capability {0:?}")]
    UnknownCapability(String),
    /// A mount that cannot be made as it is asked for.
    #[error("mount {path:?}: {reason}")]
    Mount {
        /// Where it should be in the container.
        path: String,
        /// Why not.
        reason: &'static str,
    },
    /// A namespace mode that does not go with the kind of namespace.
    #[error("namespace mode {mode} is not for the {kind} namespace")]
    NamespaceMode {
        /// Which namespace.
        kind: &'static str,
        /// The mode, a number of the CRI.
        mode: i32,
    },
    /// The pod has no such namespace to join.
    #[error("the pod has no {0} namespace to join")]
    NoNamespace(&'static str),
    /// A TARGET namespace without a running target.
    #[error("the container whose namespace is to be joined does not run")]
    NoTarget,
    /// User namespaces of pod and container differ.
    #[error("user namespace config for sandbox is different from container")]
    UserNamespaceDiffers,
    /// A user namespace that is not described by one mapping each.
    #[error("a user namespace needs one mapping of users and one of groups")]
    UserNamespaceMappings,
    /// Devices of the Container Device Interface that no file of the node has.
    #[error("unresolvable CDI devices {names}{}", faults.iter().map(|f| format!("; {f}")).collect::<String>())]
    UnknownCdi {
        /// Those that are missing.
        names: String,
        /// What is wrong with files that were left out.
        faults: Vec<String>,
    },
    /// What such a device brings cannot be given to the container.
    #[error("CDI devices: {0}")]
    Cdi(String),
    /// A profile is asked for, and the machine cannot hold anybody to it.
    #[error("{0} is not supported on this node")]
    ProfileUnsupported(&'static str),
    /// A profile name of a form that nobody knows.
    #[error("invalid {kind} profile {name:?}")]
    BadProfile {
        /// `seccomp` or `AppArmor`.
        kind: &'static str,
        /// What was asked for.
        name: String,
    },
    /// A seccomp profile that cannot be read as one.
    #[error("seccomp profile {name:?}: {reason}")]
    SeccompFile {
        /// The path that was asked for.
        name: String,
        /// What the parser says.
        reason: String,
    },
    /// Data of this crate that should have been right.
    #[error("the spec cannot be built: {0}")]
    Built(String),
}

impl From<oci_spec::OciSpecError> for SpecError {
    fn from(e: oci_spec::OciSpecError) -> Self {
        Self::Built(e.to_string())
    }
}
