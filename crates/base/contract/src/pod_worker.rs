//! PodWorker: one actor per pod UID that drives the pod to what is wanted.

use std::sync::Arc;

use actor::Inlet;
use model::PodUid;
use model::Timestamp;
use model::core::Pod;

use crate::view::Board;

/// What a worker is told about its pod. Updates coalesce, the latest wins; a kill is never lost.
#[derive(Clone, Debug)]
pub struct UpdatePod {
    /// Newest specification. `None`: only the runtime knows this pod (an orphan to be killed).
    pub pod: Option<Arc<Pod>>,
    /// Why.
    pub kind: UpdateKind,
}

/// Why a worker is updated (pod-lifecycle 2.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateKind {
    /// First time, or again after a restart of the daemon.
    Create,
    /// The specification changed (a deletion timestamp included).
    Update,
    /// Look again (readiness gates, housekeeping).
    Sync,
    /// Stop it.
    Kill(KillRequest),
}

/// How to stop a pod.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct KillRequest {
    /// Seconds; absent: the pod's own.
    pub grace_s: Option<i64>,
    /// Content may be removed as soon as containers are gone.
    pub evicted: bool,
    /// The pod is gone from its source.
    pub deleted: bool,
    /// Phase reason and message (status becomes Failed).
    pub reason: Option<(String, String)>,
}

/// Static pods of one full name take turns: PodManager grants the slot (pod-lifecycle 2.4).
#[derive(Clone, Debug)]
pub struct GrantStart;

message! {
    UpdatePod => (),
    GrantStart => (),
}

/// Where a pod is in its life. Only moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerPhase {
    /// Waits for another static pod of the same full name to finish.
    Waiting,
    /// Being kept running.
    Syncing,
    /// Containers are being stopped.
    Terminating,
    /// Containers are gone; volumes and cgroup are being removed.
    Terminated,
    /// Nothing left to do.
    Finished,
}

/// One row of the workers' board (the truth table of pod-lifecycle 2.7 is answered from it).
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerState {
    /// Where the pod is.
    pub phase: WorkerPhase,
    /// Stopping was asked for (the worker may not have begun).
    pub termination_requested: bool,
    /// No container will be started any more.
    pub started_terminating: bool,
    /// Evicted: content may go early.
    pub evicted: bool,
    /// Gone from its source.
    pub deleted: bool,
    /// End of the latest sync; 0 before the first.
    pub synced_at: Timestamp,
    /// Last failure of a sync, cleared by a good one.
    pub error: Option<String>,
    /// Cause of the latest step, for people.
    pub cause: String,
    /// The specification that the worker acts on. A rebuilt worker starts from it; `None` for a runtime-only orphan.
    pub pod: Option<Arc<Pod>>,
    /// The kill that was asked for, merged. A rebuilt worker goes on with it.
    pub kill: Option<KillRequest>,
}

/// How PodManager reaches one worker.
#[derive(Clone, Debug)]
pub struct PodWorkerHandle {
    /// Route of [`UpdatePod`].
    pub update_pod: Inlet<UpdatePod>,
    /// Route of [`GrantStart`].
    pub grant_start: Inlet<GrantStart>,
    /// Ends the actor for good.
    pub stop: StopWorker,
}

/// Ends a worker's actor.
#[derive(Clone)]
pub struct StopWorker(pub Arc<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for StopWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StopWorker")
    }
}

/// Makes the worker of one UID; given to PodManager by the wiring, so that it never imports a worker crate.
pub type WorkerFactory = Arc<dyn Fn(PodUid) -> PodWorkerHandle + Send + Sync>;

/// The workers' board.
pub type WorkersView = Board<PodUid, WorkerState>;
