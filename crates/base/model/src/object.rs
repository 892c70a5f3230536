//! ConfigMaps and Secrets that pods refer to.

use serde::{Deserialize, Serialize};

/// Kind of a referenced object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum ObjectKind {
    /// `ConfigMap`.
    ConfigMap,
    /// `Secret`.
    Secret,
    /// Of a newer peer: nobody here fetches or follows it.
    Unknown,
}
crate::tolerant!(ObjectKind, else ObjectKind::Unknown);

impl ObjectKind {
    /// The API's word for the kind: `ConfigMap`, `Secret`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::Unknown => "Object",
        }
    }

    /// As error texts of the API name it: `configmap "x" not found`.
    #[must_use]
    pub const fn singular(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
            Self::Unknown => "object",
        }
    }

    /// As a kubelet's own texts name it: `couldn't get configMap ns/x`.
    #[must_use]
    pub const fn camel_case(self) -> &'static str {
        match self {
            Self::ConfigMap => "configMap",
            Self::Secret => "secret",
            Self::Unknown => "object",
        }
    }
}

/// Name of one referenced object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// Kind.
    pub kind: ObjectKind,
    /// Namespace, always that of the pod.
    pub namespace: String,
    /// Name.
    pub name: String,
}
