//! ImageManager: pull queue, pull back-off.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use actor::AskError;
use cri_api::v1::PodSandboxConfig;
use model::core::{Pod, Secret};

/// Make sure that an image is on the node, by the container's pull policy. Idempotent. Emits the pull events itself
/// (Pulling, Pulled, Failed, BackOff, ErrImageNeverPull, InspectFailed). A pull goes on when the asker is gone.
#[derive(Clone, Serialize, Deserialize)]
pub struct EnsureImage {
    /// Pod that wants it.
    pub pod: Arc<Pod>,
    /// Event field path, e.g. `spec.containers{app}`.
    pub field_path: String,
    /// Image as written in the specification.
    pub image: String,
    /// `Always`, `IfNotPresent`, `Never`.
    pub pull_policy: String,
    /// Sent with the pull.
    #[serde(with = "crate::wire")]
    pub sandbox_config: Arc<PodSandboxConfig>,
    /// Empty: the default handler.
    pub runtime_handler: String,
    /// The pod's `imagePullSecrets` that could be read, in order.
    pub pull_secrets: Arc<[Arc<Secret>]>,
}

impl std::fmt::Debug for EnsureImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.pull_secrets.iter().map(|s| s.metadata.name.as_deref().unwrap_or_default()).collect();
        f.debug_struct("EnsureImage")
            .field("pod", &model::pod::name(&self.pod))
            .field("field_path", &self.field_path)
            .field("image", &self.image)
            .field("pull_policy", &self.pull_policy)
            .field("runtime_handler", &self.runtime_handler)
            .field("pull_secrets", &names)
            .finish_non_exhaustive()
    }
}

/// An image that is there.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EnsuredImage {
    /// What to put into `ContainerConfig.image.image` (id or reference as the runtime answered).
    pub image_ref: String,
    /// Numeric user of the image, if it has one.
    pub uid: Option<i64>,
    /// User name of the image, if it has one and it is not numeric.
    pub username: String,
}

/// Remove images that nobody uses, whatever room there is (node-and-resources 4.1): a disk runs short. Pinned ones and those
/// that are younger than `imageMinimumGCAge` stay. Answers how many bytes that freed by the runtime's figures. Idempotent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveUnusedImages;

/// Why it is not: becomes the container's Waiting reason and message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct ImageFailure {
    /// `ErrImagePull`, `ImagePullBackOff`, `ErrImageNeverPull`, `InvalidImageName`, `ImageInspectError`,
    /// `RegistryUnavailable`, `SignatureValidationFailed`.
    pub reason: String,
    /// Text for people.
    pub message: String,
}

impl From<AskError> for ImageFailure {
    fn from(e: AskError) -> Self {
        Self { reason: "ErrImagePull".to_owned(), message: format!("image manager: {e}") }
    }
}

/// Pulls under way and waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageView {
    /// Images being pulled now.
    pub pulling: Vec<String>,
    /// Requests that wait for a pull slot.
    pub queued: usize,
}
