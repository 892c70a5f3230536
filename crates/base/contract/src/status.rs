//! StatusManager: the version of each pod's status.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

use model::core::{Pod, PodStatus};
use model::{PodUid, Timestamp};

/// Store the status that a pod's worker computed. Idempotent: an equal status makes no new version. Latest wins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetPodStatus {
    /// The pod as its worker sees it (static pods: the static pod, not the mirror).
    pub pod: Arc<Pod>,
    /// Its status.
    pub status: Arc<PodStatus>,
}
/// The pod is torn down: close every container state that is still open and mark the status finished (pod-lifecycle 9.9).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TerminatePod {
    /// Pod.
    pub pod: Arc<Pod>,
}
/// Drop the statuses of all other pods (housekeeping; the set is complete).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RetainPodStatuses {
    /// Pods and mirror pods that are still known.
    pub known: BTreeSet<PodUid>,
}

/// One row of the status board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusEntry {
    /// Grows with every change of this pod's status; never goes back, also not over a restart of the actor.
    pub version: u64,
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// The status.
    pub status: Arc<PodStatus>,
    /// The worker is done with the pod: nothing more will change.
    pub finished: bool,
    /// When this version was made.
    pub changed_at: Timestamp,
}

impl StatusEntry {
    /// Whether the pod has come to its end.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        model::pod::is_terminal_phase(self.status.phase.as_deref())
    }
}
