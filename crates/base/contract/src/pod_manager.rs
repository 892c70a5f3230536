//! PodManager: the pods that should be here, by UID.

use std::sync::Arc;

use actor::Inlet;
use model::PodUid;
use model::core::Pod;

use crate::config_sources::Source;
use crate::view::Board;

/// The complete set of one source (SET semantics: what is missing is removed). Idempotent. An empty set counts as "seen".
#[derive(Clone, Debug)]
pub struct SetPods {
    /// Where they come from.
    pub source: Source,
    /// All of them.
    pub pods: Vec<Arc<Pod>>,
    /// From a copy that may lack some: they run, but the source has not spoken yet, so that nothing unknown is touched.
    pub provisional: bool,
}
/// Stop one pod now (eviction, preemption, shutdown), whatever its source wants. Answers when the request is with the
/// worker; watch the workers' board for the end. Idempotent: the grace only gets shorter.
#[derive(Clone, Debug)]
pub struct KillPod {
    /// Pod.
    pub uid: PodUid,
    /// Seconds; absent: the pod's own.
    pub grace_s: Option<i64>,
    /// Containers and logs may be removed at once.
    pub evict: bool,
    /// Phase reason and message to set, e.g. `Evicted`.
    pub reason: Option<(String, String)>,
}

message! {
    SetPods => (),
    KillPod => bool,
}

/// One row of the board of desired pods.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredPod {
    /// The pod, stamped with source and first-seen time.
    pub pod: Arc<Pod>,
    /// Where it comes from.
    pub source: Source,
    /// Admission refused it: reason and message.
    pub rejected: Option<(String, String)>,
    /// The mirror pod that the API server holds for a static pod.
    pub mirror: Option<Arc<Pod>>,
}

/// How others reach PodManager.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each field is the route of the message it is named after")]
pub struct PodManagerHandle {
    pub set_pods: Inlet<SetPods>,
    pub kill_pod: Inlet<KillPod>,
    pub view: Board<PodUid, DesiredPod>,
}

impl Default for PodManagerHandle {
    fn default() -> Self {
        Self {
            set_pods: Inlet::unbound("PodManager.SetPods"),
            kill_pod: Inlet::unbound("PodManager.KillPod"),
            view: Board::new(),
        }
    }
}

protocol! {
    /// What a PodManager answers.
    PodManagerProtocol for PodManagerHandle {
        set_pods: SetPods,
        kill_pod: KillPod,
    }
}
