//! The workers of pods, one per UID: which were made, and the messages to them.

use std::collections::BTreeSet;
use std::sync::Arc;

use contract::Crew;
use contract::board::BoardReader;
use contract::pod_worker::{GrantStart, KillRequest, RetireWorker, UpdateKind, UpdatePod, WorkerPhase, WorkerState};
use model::PodUid;
use model::allocation::{PendingResize, Resizable, asks_the_same};
use model::core::Pod;
use pod_admission::{PREEMPTED, PREEMPTING};

/// See the module.
#[derive(Debug)]
pub(crate) struct Workers {
    crew: Crew<contract::PodManager>,
    rows: BoardReader<PodUid, WorkerState>,
    /// Pods whose worker was made and is not retired yet.
    made: BTreeSet<PodUid>,
    /// Pods that came again while their worker was stopping the pod: they get another worker when it is done.
    restart_requested: BTreeSet<PodUid>,
    /// Pods with a resize that an earlier daemon granted and may not have carried out; their workers do not know yet.
    pub(crate) behind: BTreeSet<PodUid>,
}

impl Workers {
    pub(crate) fn new(crew: Crew<contract::PodManager>) -> Self {
        let (made, restart_requested, behind) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Self { rows: crew.board(), crew, made, restart_requested, behind }
    }

    /// Takes over workers that an earlier generation of the actor made.
    pub(crate) fn recover(&mut self, is_desired: impl Fn(&PodUid) -> bool) {
        for (uid, worker) in self.rows.snapshot() {
            if worker.deleted && is_desired(&uid) {
                self.restart_requested.insert(uid.clone());
            }
            self.made.insert(uid);
        }
    }

    pub(crate) fn made(&self) -> &BTreeSet<PodUid> {
        &self.made
    }

    pub(crate) fn row(&self, uid: &PodUid) -> Option<Arc<WorkerState>> {
        self.rows.get(uid)
    }

    /// Whether the pod's worker has got its containers stopped; `false` when there is no worker.
    pub(crate) fn has_stopped(&self, uid: &PodUid) -> bool {
        self.row(uid).is_some_and(|w| w.phase >= WorkerPhase::Terminated)
    }

    /// Whether nothing runs any more of a pod that was to make room.
    pub(crate) fn has_made_room(&self, victim: &PodUid) -> bool {
        self.row(victim).is_none_or(|w| w.phase >= WorkerPhase::Terminated)
    }

    /// LIFE-OF-A-POD 4/12: one worker per UID; updates coalesce there.
    pub(crate) fn start(&mut self, uid: &PodUid, pod: Option<Arc<Pod>>, kind: UpdateKind) {
        self.start_with(uid, pod, None, kind);
    }

    /// As [`Self::start`]; `pending`: a resize that is not granted.
    pub(crate) fn start_with(
        &mut self,
        uid: &PodUid,
        pod: Option<Arc<Pod>>,
        pending: Option<PendingResize>,
        kind: UpdateKind,
    ) {
        self.made.insert(uid.clone());
        self.update_with(uid, pod, pending, kind);
    }

    /// Whether a UID has a worker. One that an earlier generation made may have come on the board only after this one read it.
    pub(crate) fn has(&mut self, uid: &PodUid) -> bool {
        if self.rows.get(uid).is_some() {
            self.made.insert(uid.clone());
        }
        self.made.contains(uid)
    }

    /// Sends an update to the worker of a pod, if there is one. What it refuses or dies over is sent again by housekeeping, until
    /// its row shows it.
    pub(crate) fn update(&mut self, uid: &PodUid, pod: Option<Arc<Pod>>, kind: UpdateKind) {
        self.update_with(uid, pod, None, kind);
    }

    /// As [`Self::update`]; `pending`: a resize that is not granted.
    pub(crate) fn update_with(
        &mut self,
        uid: &PodUid,
        pod: Option<Arc<Pod>>,
        pending: Option<PendingResize>,
        kind: UpdateKind,
    ) {
        if !self.has(uid) {
            return;
        }
        if self.rows.get(uid).is_some() {
            self.behind.remove(uid);
        }
        // Every word may be lost and is said again.
        let is_behind = kind == UpdateKind::Create && self.behind.contains(uid);
        if let Err(e) = self.crew.tell(UpdatePod { uid: uid.clone(), pod, kind, pending, is_behind }) {
            tracing::warn!(%uid, error = %e, "worker did not take the update, will be told again");
        }
    }

    /// Whether containers may not have yet what the pod was granted. A worker that has not been heard of since then does not know.
    pub(crate) fn resizes(&self, uid: &PodUid, granted: &Pod, what: Resizable) -> bool {
        let Some(row) = self.rows.get(uid) else { return true };
        row.resizing.is_some() || row.pod.as_ref().is_none_or(|known| !asks_the_same(known, granted, what))
    }

    /// The pod is gone from its source.
    pub(crate) fn kill_removed(&mut self, uid: &PodUid, pod: Option<Arc<Pod>>) {
        let request = KillRequest { deleted: true, ..KillRequest::default() };
        self.update(uid, pod, UpdateKind::Kill(request));
    }

    /// The pod makes room for a critical one.
    pub(crate) fn preempt(&mut self, uid: &PodUid, pod: Option<Arc<Pod>>) {
        let reason = Some((PREEMPTING.to_owned(), PREEMPTED.to_owned()));
        let request = KillRequest { evicted: true, reason, ..KillRequest::default() };
        self.update(uid, pod, UpdateKind::Kill(request));
    }

    /// Ends a pod before its time. Answers whether it has a worker, and the worker was told.
    pub(crate) fn kill_early(&mut self, uid: &PodUid, pod: Option<Arc<Pod>>, request: KillRequest) -> bool {
        let update =
            UpdatePod { uid: uid.clone(), pod, kind: UpdateKind::Kill(request), pending: None, is_behind: false };
        self.has(uid)
            && self
                .crew
                .tell(update)
                .inspect_err(|e| tracing::warn!(%uid, error = %e, "worker did not take the order to end the pod"))
                .is_ok()
    }

    /// Lets a static pod start: its full name is free.
    pub(crate) fn grant_start(&mut self, uid: &PodUid) {
        if self.has(uid)
            && let Err(e) = self.crew.tell(GrantStart { uid: uid.clone() })
        {
            tracing::debug!(%uid, error = %e, "start not granted yet, next round tries again");
        }
    }

    /// Retires a worker that is finished; `false`: the message could not be sent.
    pub(crate) fn retire(&mut self, uid: &PodUid) -> bool {
        if let Err(e) = self.crew.tell(RetireWorker { uid: uid.clone() }) {
            tracing::warn!(%uid, error = %e, "the worker is not retired yet, next round tries again");
            return false;
        }
        self.made.remove(uid);
        self.restart_requested.remove(uid);
        true
    }

    pub(crate) fn request_restart(&mut self, uid: PodUid) {
        self.restart_requested.insert(uid);
    }

    pub(crate) fn withdraw_restart(&mut self, uid: &PodUid) {
        self.behind.remove(uid);
        self.restart_requested.remove(uid);
    }

    pub(crate) fn is_restart_requested(&self, uid: &PodUid) -> bool {
        self.restart_requested.contains(uid)
    }
}
