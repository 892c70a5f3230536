//! What is known of a pod in the API.

use std::sync::Arc;

use model::core::{Pod, PodStatus};
use model::json::{self, FromJson};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use model::pod;
use serde::Deserialize;

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

/// As much of a pod in an answer of the server as the sync of its status needs: most of it is not even decoded.
#[derive(Deserialize)]
pub(crate) struct Answer {
    metadata: Metadata,
    status: Option<PodStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<Time>,
    finalizers: Option<Vec<String>>,
}

impl FromJson for Answer {
    fn from_json(text: &[u8]) -> Result<Self, serde_json::Error> {
        json::read(text)
    }
}

impl From<Answer> for ApiCopy {
    fn from(Answer { metadata, status }: Answer) -> Self {
        let Metadata { uid, resource_version, deletion_timestamp, finalizers } = metadata;
        let metadata = ObjectMeta { uid, resource_version, deletion_timestamp, finalizers, ..ObjectMeta::default() };
        Self::of(Arc::new(Pod { metadata, status, spec: None }))
    }
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

    pub(crate) fn status(&self) -> PodStatus {
        self.pod.status.clone().unwrap_or_default()
    }

    pub(crate) fn is_terminal(&self) -> bool {
        pod::is_terminal(&self.pod)
    }

    /// Whether both are the same object at the same time.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.uid == other.uid && self.version.is_some() && self.version == other.version
    }

    /// Whether this is newer than another copy of the same object.
    pub(crate) fn is_newer_than(&self, other: &Self) -> bool {
        self.uid == other.uid && self.version > other.version
    }
}
