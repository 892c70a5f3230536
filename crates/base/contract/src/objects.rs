//! ObjectStore: configMaps, secrets, tokens, certificates, trust anchors and services that pods of this node use.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

use actor::AskError;
use model::core::Pod;
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use model::{PodUid, Timestamp};

/// Follow everything that this pod references, until it is released. Idempotent, latest wins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HoldObjects {
    /// Pod.
    pub pod: Arc<Pod>,
}
/// The pod is gone: what only it referenced is followed no more, its tokens are forgotten. Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReleaseObjects {
    /// Pod.
    pub uid: PodUid,
}
/// Read one configMap. Waits at most a second for a first answer of the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FetchConfigMap {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}
/// Read one secret. Waits at most a second for a first answer of the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FetchSecret {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}
/// A token of the pod's service account, bound to the pod (TokenRequest). A cached one is answered while it is fresh;
/// after a failed renewal the old one while it is valid (interfaces 9.2).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FetchToken {
    /// Pod.
    pub pod: Arc<Pod>,
    /// Audience; empty: the API server's.
    pub audience: String,
    /// Life in seconds.
    pub expiration_s: i64,
}
/// Trust anchors as PEM, of one ClusterTrustBundle or of those of a signer, each once. A kubelet waits for the first list of
/// the server, up to 10 s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FetchTrustAnchors {
    /// Name of the bundle.
    pub name: Option<String>,
    /// Signer, where there is no name.
    pub signer_name: Option<String>,
    /// Which bundles of the signer; `None`: none of them.
    pub label_selector: Option<LabelSelector>,
    /// Nothing that fits is no failure: the answer is empty then.
    pub optional: bool,
}
/// The certificate that a `podCertificate` source of a projected volume stands for, as soon as it is issued. It is asked for when
/// the pod is held, and renewed in time; the board tells of both.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FetchPodCertificate {
    /// Pod.
    pub pod: Arc<Pod>,
    /// Name of the volume.
    pub volume: String,
    /// Place of the source in the volume.
    pub index: usize,
}
/// Services of one namespace and `default/kubernetes`, for environment variables.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FetchServices {
    /// Namespace.
    pub namespace: String,
}
/// Annotations of a service account (credential providers).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FetchServiceAccount {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}
/// Handler and overhead of a RuntimeClass.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FetchRuntimeClass {
    /// Name.
    pub name: String,
}

/// Why an object cannot be had. The text is what a kubelet shows in its events and waiting messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum ObjectError {
    /// `configmap "x" not found`.
    #[error("{0}")]
    NotFound(String),
    /// `object "ns"/"name" not registered`.
    #[error("{0}")]
    NotRegistered(String),
    /// Anything else: refused, not answered, not synced in time.
    #[error("{0}")]
    Failed(String),
}
model::tolerant!(ObjectError, else ObjectError::Failed("a failure of a kind that is not known here".to_owned()));

impl ObjectError {
    /// The object does not exist: `optional: true` forgives it.
    #[must_use]
    pub const fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }
}

impl From<AskError> for ObjectError {
    fn from(e: AskError) -> Self {
        Self::Failed(format!("object store: {e}"))
    }
}

/// A service-account token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The token.
    pub text: String,
    /// When it ends.
    pub expires_at: Timestamp,
    /// When whoever wrote it down should fetch again.
    pub refresh_at: Timestamp,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("text", &"<secret>").field("expires_at", &self.expires_at).finish()
    }
}

/// A certificate of a pod, with its key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodCertificate {
    /// Private key, PKCS#8 as PEM.
    pub key_pem: Arc<str>,
    /// Certificates, the pod's own first, as PEM.
    pub chain_pem: Arc<str>,
}

impl std::fmt::Debug for PodCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PodCertificate").field("key_pem", &"<secret>").field("chain_pem", &self.chain_pem).finish()
    }
}

/// What credential providers want to know of a service account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceAccountFacts {
    /// UID.
    pub uid: String,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

/// One row of the board: the newest version that is known here. Readers refetch when it moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectVersion {
    /// `metadata.resourceVersion`; empty: the object does not exist.
    pub resource_version: String,
}
