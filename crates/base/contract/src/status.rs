//! StatusManager: the version of each pod's status.

use std::collections::BTreeSet;
use std::sync::Arc;

use actor::Inlet;
use model::core::{Pod, PodStatus};
use model::{ContainerId, PodUid, Timestamp};

use crate::view::Board;

/// Store the status that a pod's worker computed. Idempotent: an equal status makes no new version. Latest wins.
#[derive(Clone, Debug)]
pub struct SetPodStatus {
    /// The pod as its worker sees it (static pods: the static pod, not the mirror).
    pub pod: Arc<Pod>,
    /// Its status.
    pub status: PodStatus,
}
/// A readiness probe changed its verdict: patch the stored copy (container, Ready, ContainersReady).
#[derive(Clone, Debug)]
pub struct SetContainerReadiness {
    /// Pod.
    pub pod: Arc<Pod>,
    /// Container instance.
    pub container: ContainerId,
    /// Verdict.
    pub ready: bool,
}
/// A startup probe changed its verdict: patch `started` in the stored copy.
#[derive(Clone, Debug)]
pub struct SetContainerStartup {
    /// Pod.
    pub pod: Arc<Pod>,
    /// Container instance.
    pub container: ContainerId,
    /// Verdict.
    pub started: bool,
}
/// The pod is torn down: close every container state that is still open and mark the status finished (pod-lifecycle 9.9).
#[derive(Clone, Debug)]
pub struct TerminatePod {
    /// Pod.
    pub pod: Arc<Pod>,
}
/// Drop the statuses of all other pods (housekeeping; the set is complete).
#[derive(Clone, Debug)]
pub struct RetainPodStatuses {
    /// Pods and mirror pods that are still known.
    pub known: BTreeSet<PodUid>,
}

message! {
    SetPodStatus => (),
    SetContainerReadiness => (),
    SetContainerStartup => (),
    TerminatePod => (),
    RetainPodStatuses => (),
}

/// One row of the status board.
#[derive(Clone, Debug, PartialEq)]
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

/// How others reach StatusManager.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each field is the route of the message it is named after")]
pub struct StatusHandle {
    pub set_pod_status: Inlet<SetPodStatus>,
    pub set_container_readiness: Inlet<SetContainerReadiness>,
    pub set_container_startup: Inlet<SetContainerStartup>,
    pub terminate_pod: Inlet<TerminatePod>,
    pub retain_pod_statuses: Inlet<RetainPodStatuses>,
    pub view: Board<PodUid, StatusEntry>,
}

impl Default for StatusHandle {
    fn default() -> Self {
        Self {
            set_pod_status: Inlet::unbound("StatusManager.SetPodStatus"),
            set_container_readiness: Inlet::unbound("StatusManager.SetContainerReadiness"),
            set_container_startup: Inlet::unbound("StatusManager.SetContainerStartup"),
            terminate_pod: Inlet::unbound("StatusManager.TerminatePod"),
            retain_pod_statuses: Inlet::unbound("StatusManager.RetainPodStatuses"),
            view: Board::new(),
        }
    }
}

protocol! {
    /// What a StatusManager answers.
    StatusManagerProtocol for StatusHandle {
        set_pod_status: SetPodStatus,
        set_container_readiness: SetContainerReadiness,
        set_container_startup: SetContainerStartup,
        terminate_pod: TerminatePod,
        retain_pod_statuses: RetainPodStatuses,
    }
}
