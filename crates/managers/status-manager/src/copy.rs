//! What is known of a pod in the API.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use contract::config_sources::Source;
use contract::pod_manager::DesiredPod;
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

    /// The API's copy as the board of desired pods has it; `None` for a static pod without a mirror.
    pub(crate) fn on_board(row: &DesiredPod) -> Option<Self> {
        match row.source {
            Source::Api => Some(Self::of(row.pod.clone())),
            Source::File | Source::Http | Source::Unknown => row.mirror.clone().map(Self::of),
        }
    }

    /// An answer of the server, without what a status needs not.
    pub(crate) fn answered(mut pod: Pod) -> Self {
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
        pod::is_terminal_phase(self.pod.status.as_ref().and_then(|s| s.phase.as_deref()))
    }

    /// Whether this is newer than another copy of the same object.
    pub(crate) fn is_newer_than(&self, other: &Self) -> bool {
        self.uid == other.uid && self.version > other.version
    }

    /// Tells one status from another without keeping either.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        serde_json::to_string(&self.pod.status).unwrap_or_default().hash(&mut hasher);
        hasher.finish()
    }
}
