//! Objects that pods refer to.

use serde::{Deserialize, Serialize};

use crate::PodUid;

/// Kind of a referenced object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum ObjectKind {
    /// `ConfigMap`.
    ConfigMap,
    /// `Secret`.
    Secret,
    /// `ClusterTrustBundle`, see [`ObjectRef::trust_bundles`].
    ClusterTrustBundle,
    /// What a `podCertificate` source of a volume stands for, see [`ObjectRef::pod_certificate`].
    PodCertificate,
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
            Self::ClusterTrustBundle => "ClusterTrustBundle",
            Self::PodCertificate => "PodCertificate",
            Self::Unknown => "Object",
        }
    }

    /// As error texts of the API name it: `configmap "x" not found`.
    #[must_use]
    pub const fn singular(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
            Self::ClusterTrustBundle => "clustertrustbundle",
            Self::PodCertificate => "podcertificate",
            Self::Unknown => "object",
        }
    }

    /// As a kubelet's own texts name it: `couldn't get configMap ns/x`.
    #[must_use]
    pub const fn camel_case(self) -> &'static str {
        match self {
            Self::ConfigMap => "configMap",
            Self::Secret => "secret",
            Self::ClusterTrustBundle => "clusterTrustBundle",
            Self::PodCertificate => "podCertificate",
            Self::Unknown => "object",
        }
    }
}

/// Name of one referenced object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// Kind.
    pub kind: ObjectKind,
    /// Namespace, that of the pod; empty for what belongs to the cluster.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectRef {
    /// All ClusterTrustBundles together: a selector may take any of them, so a pod that uses one holds them all.
    #[must_use]
    pub const fn trust_bundles() -> Self {
        Self { kind: ObjectKind::ClusterTrustBundle, namespace: String::new(), name: String::new() }
    }

    /// The certificate that one source of a projected volume stands for. The API has no object of it: it exists on this node.
    #[must_use]
    pub fn pod_certificate(namespace: &str, uid: &PodUid, volume: &str, index: usize) -> Self {
        let name = format!("{uid}/{volume}/{index}");
        Self { kind: ObjectKind::PodCertificate, namespace: namespace.to_owned(), name }
    }
}
