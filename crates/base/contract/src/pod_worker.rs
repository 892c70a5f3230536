//! PodWorker: one actor per pod UID that drives the pod to what is wanted.

use serde::{Deserialize, Serialize};
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use actor::{AskError, Family, Managed, Route, TellError};
use futures::FutureExt;
use futures::future::BoxFuture;
use model::allocation::{PendingResize, ResizeInProgress};
use model::core::Pod;
use model::history::PodHistory;
use model::{PodUid, Timestamp};

use crate::board::Board;
use crate::fence::Fence;

/// What a worker is told about its pod. Updates coalesce, the latest wins; a kill is never lost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdatePod {
    /// Pod: its worker is made when there is none.
    pub uid: PodUid,
    /// Newest specification. `None`: only the runtime knows this pod (an orphan to be killed).
    pub pod: Option<Arc<Pod>>,
    /// Why.
    pub kind: UpdateKind,
    /// A resize of the pod that is not granted; `pod` has what is.
    #[serde(default)]
    pub pending: Option<PendingResize>,
    /// A resize that was granted may not have been carried out: containers and cgroup are looked at.
    #[serde(default)]
    pub is_behind: bool,
}

/// Why a worker is updated (pod-lifecycle 2.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum UpdateKind {
    /// First time, or again after a restart of the daemon.
    Create,
    /// The specification changed (a deletion timestamp included).
    Update,
    /// Stop it.
    Kill(KillRequest),
    /// Look again. Also what a worker makes of a kind that it does not know.
    Sync,
}
model::tolerant!(UpdateKind, else UpdateKind::Sync);

/// How to stop a pod.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KillRequest {
    /// Seconds; absent: the pod's own.
    pub grace_s: Option<i64>,
    /// Content may be removed as soon as containers are gone.
    pub evicted: bool,
    /// The pod is gone from its source.
    pub deleted: bool,
    /// Phase reason and message (status becomes Failed).
    pub reason: Option<(String, String)>,
    /// The pod went over a limit of its own: the status says so without `DisruptionTarget`.
    #[serde(default)]
    pub own_fault: bool,
}

/// Static pods of one full name take turns: PodManager grants the slot (pod-lifecycle 2.4).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrantStart {
    /// Pod.
    pub uid: PodUid,
}
/// The worker has nothing left to do: its row goes, it works off its queue and ends. Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RetireWorker {
    /// Pod.
    pub uid: PodUid,
}

/// Where a pod is in its life. Only moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum WorkerPhase {
    /// Waits for another static pod of the same full name to finish.
    Waiting,
    /// Being kept running. Also what a phase is read as that is not known here: its containers may run, and nothing of it is
    /// taken for finished.
    Syncing,
    /// Containers are being stopped.
    Terminating,
    /// Containers are gone; volumes and cgroup are being removed.
    Terminated,
    /// Nothing left to do.
    Finished,
}
model::tolerant!(WorkerPhase, else WorkerPhase::Syncing);

/// One row of the workers' board (the truth table of pod-lifecycle 2.7 is answered from it).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// A resize that is not granted.
    #[serde(default)]
    pub pending: Option<PendingResize>,
    /// A resize that was granted and is not carried out yet.
    #[serde(default)]
    pub resizing: Option<ResizeInProgress>,
}

impl WorkerState {
    /// A worker in this phase that has not synced yet; a phase of stopping was asked for.
    #[must_use]
    pub fn new(phase: WorkerPhase) -> Self {
        let stops = phase >= WorkerPhase::Terminating;
        Self {
            phase,
            termination_requested: stops,
            started_terminating: stops,
            evicted: false,
            deleted: false,
            synced_at: Timestamp::ZERO,
            error: None,
            cause: String::new(),
            pod: None,
            kill: None,
            pending: None,
            resizing: None,
        }
    }
}

/// Answers [`RetireWorker`] for a family of workers in this process.
pub(crate) struct Retire<A: Managed> {
    pub(crate) family: Arc<Family<PodUid, A>>,
    pub(crate) fence: Fence,
    pub(crate) rows: Board<PodUid, WorkerState>,
    pub(crate) histories: Board<PodUid, PodHistory>,
}

impl<A: Managed> Retire<A> {
    fn retire(&self, uid: &PodUid) {
        self.family.retire(uid, || {
            self.fence.revoke(uid.as_str());
            self.rows.put(&self.fence, uid.clone(), None);
            self.histories.put(&self.fence, uid.clone(), None);
        });
    }
}

impl<A: Managed> Route<RetireWorker> for Retire<A> {
    fn tell(&self, message: RetireWorker) -> Result<(), TellError> {
        self.retire(&message.uid);
        Ok(())
    }

    fn ask(self: Arc<Self>, message: RetireWorker, _: Duration) -> BoxFuture<'static, Result<(), AskError>> {
        self.retire(&message.uid);
        ready(Ok(())).boxed()
    }
}
