//! Why an environment cannot be made.

use super::field::FieldError;
use super::resource::ResourceError;

/// The environment cannot be made; the container waits with `CreateContainerConfigError` and is retried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvError {
    /// `enableServiceLinks` has no value: the pod was not defaulted.
    #[error("nil pod.spec.enableServiceLinks encountered, cannot construct envvars")]
    NoServiceLinks,
    /// Services are not known yet.
    #[error("services have not yet been read at least once, cannot construct envvars")]
    NoServicesYet,
    /// There is no API server to ask for a ConfigMap or Secret.
    #[error("couldn't get {kind} {namespace}/{name}, no kubeClient defined")]
    NoClient {
        /// Kind as messages write it.
        kind: &'static str,
        /// Namespace of the object.
        namespace: String,
        /// Name of the object.
        name: String,
    },
    /// A ConfigMap or Secret is missing or cannot be read; the text is the API's.
    #[error("{0}")]
    Object(String),
    /// A key that is not optional is missing.
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    NoKey {
        /// The key.
        key: String,
        /// Kind as messages write it.
        kind: &'static str,
        /// Namespace of the object.
        namespace: String,
        /// Name of the object.
        name: String,
    },
    /// A variable from a file that is missing or lacks the key.
    #[error("{0}")]
    File(String),
    /// A field of the downward API.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A resource of the downward API.
    #[error(transparent)]
    Resource(#[from] ResourceError),
}
