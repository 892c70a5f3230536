//! PodManager: the pods that should be here, by UID.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use model::PodUid;
use model::allocation::PendingResize;
use model::core::Pod;

use crate::config_sources::Source;
use crate::pod_worker::KillRequest;

/// The complete set of one source (SET semantics: what is missing is removed). Idempotent. An empty set counts as "seen".
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetPods {
    /// Where they come from.
    pub source: Source,
    /// All of them.
    pub pods: Vec<Arc<Pod>>,
    /// From a copy that may lack some: they run, but the source has not spoken yet, so that nothing unknown is touched.
    pub provisional: bool,
    /// Number of this set: what changes in it is told as [`ChangePods`]. 0: the next word is a complete set again.
    pub number: u64,
}
/// What changed in the set of one source since one that PodManager has. Idempotent: a change that was made is taken again.
/// Without any pod it asks whether PodManager still has the set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangePods {
    /// Where they come from.
    pub source: Source,
    /// Number of the set that changed.
    pub base: u64,
    /// Number of the set that this makes of it.
    pub number: u64,
    /// Pods that came, or are not as they were.
    pub changed: Vec<Arc<Pod>>,
    /// Pods that went.
    pub gone: Vec<PodUid>,
}
/// What became of [`ChangePods`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum ChangesTaken {
    /// PodManager has the set of that number.
    Taken,
    /// It has not the set that changed: send [`SetPods`]. Also what an answer is read as that is not known here.
    SetNeeded,
}
impl crate::Outcome for ChangesTaken {}
model::tolerant!(ChangesTaken, else ChangesTaken::SetNeeded);
/// End a pod before its time: the node has no room for it, or shuts down. It stays desired, and does not start again.
/// Idempotent. Answers whether the pod has a worker and that was told; one that dies over it must be told again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillPod {
    /// Pod.
    pub uid: PodUid,
    /// How, and what its status says.
    pub request: KillRequest,
}
/// Remove dead containers and sandboxes, those of ended pods that still exist included: a disk runs short. Answered when that
/// is done; what cannot be removed is logged. Idempotent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveDeadContainers;
/// One row of the board of desired pods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DesiredPod {
    /// The pod, stamped with source and first-seen time; of what can be resized it has what was granted.
    pub pod: Arc<Pod>,
    /// The pod as its source has it, where not all of it is granted.
    #[serde(default)]
    pub wanted: Option<Arc<Pod>>,
    /// Why it is not granted, once that is decided.
    #[serde(default)]
    pub pending: Option<PendingResize>,
    /// Where it comes from.
    pub source: Source,
    /// Admission has not decided about it, or it waits for others to make room: it must not start.
    #[serde(default)]
    pub undecided: bool,
    /// Admission refused it: reason and message.
    pub rejected: Option<(String, String)>,
    /// The mirror pod that the API server holds for a static pod.
    pub mirror: Option<Arc<Pod>>,
}

impl DesiredPod {
    /// A pod that was admitted and has no mirror.
    #[must_use]
    pub fn admitted(pod: Arc<Pod>, source: Source) -> Self {
        Self { pod, wanted: None, pending: None, source, undecided: false, rejected: None, mirror: None }
    }
}
