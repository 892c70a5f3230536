//! Events as the node records them, before they become API objects.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::PodUid;

/// Severity of an event; the API knows exactly these two.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum EventType {
    /// Expected.
    Normal,
    /// Needs a look. Also what a severity is read as that is not known here.
    Warning,
}
crate::tolerant!(EventType, else EventType::Warning);

impl EventType {
    /// The API's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

/// What an event is about.
#[derive(Clone, PartialEq, Eq, Debug, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum EventObject {
    /// The node itself.
    Node,
    /// A pod, or one of its containers when `field_path` is e.g. `spec.containers{app}`.
    Pod {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        name: String,
        /// UID of the pod.
        uid: PodUid,
        /// Empty, or the container inside the pod.
        field_path: String,
    },
    /// A PersistentVolumeClaim.
    Claim {
        /// Namespace of the claim.
        namespace: String,
        /// Name of the claim.
        name: String,
        /// UID of the claim.
        uid: String,
        /// Version of the claim as this node knew it; empty: unknown.
        #[serde(default)]
        resource_version: String,
    },
    /// Something that only a newer peer knows: its events are filed nowhere, and counted.
    Unknown,
}
crate::tolerant!(EventObject, else EventObject::Unknown);

/// One occurrence. Reason strings are the kubelet's (pod-lifecycle 11).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeEvent {
    /// Severity.
    pub kind: EventType,
    /// CamelCase reason.
    pub reason: Cow<'static, str>,
    /// Text for people.
    pub message: String,
    /// What it is about.
    pub object: EventObject,
}
