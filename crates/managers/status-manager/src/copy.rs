//! What is known of a pod in the API.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use model::core::{Pod, PodStatus};
use model::pod;

/// The API's copy of a pod, or of the mirror of a static pod.
#[derive(Clone, Debug)]
pub(crate) struct ApiCopy {
    /// UID of the object in the API (of the mirror, for a static pod).
    pub(crate) uid: String,
    /// Resource version, where it is known and a number: a copy from the pod store has none.
    pub(crate) version: Option<u64>,
    /// Has a deletion timestamp.
    pub(crate) deleting: bool,
    pub(crate) pod: Arc<Pod>,
}

impl ApiCopy {
    pub(crate) fn of(pod: Arc<Pod>) -> Self {
        let meta = &pod.metadata;
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            version: meta.resource_version.as_deref().and_then(|v| v.parse().ok()),
            deleting: meta.deletion_timestamp.is_some(),
            pod,
        }
    }

    /// From an answer of the server, without what the sync of a status does not need.
    pub(crate) fn of_answer(mut pod: Pod) -> Self {
        pod.spec = None;
        pod.metadata.managed_fields = None;
        pod.metadata.annotations = None;
        pod.metadata.labels = None;
        Self::of(Arc::new(pod))
    }

    pub(crate) fn status(&self) -> PodStatus {
        self.pod.status.clone().unwrap_or_default()
    }

    pub(crate) fn is_terminal(&self) -> bool {
        pod::is_terminal(&self.pod)
    }

    /// Whether this is newer than another copy of the same object.
    pub(crate) fn is_newer_than(&self, other: &Self) -> bool {
        self.uid == other.uid && self.version > other.version
    }

    /// Of the status, to compare it later without keeping it. Not stable across builds.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        serde_json::to_string(&self.pod.status).unwrap_or_default().hash(&mut hasher);
        hasher.finish()
    }
}
