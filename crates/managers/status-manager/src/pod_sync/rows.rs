//! One pod as the boards show it.

use std::collections::BTreeSet;
use std::sync::Arc;

use contract::Crew;
use contract::board::BoardReader;
use contract::config_sources::Source;
use contract::pod_manager::DesiredPod;
use contract::pod_worker::{WorkerPhase, WorkerState};
use contract::status::StatusEntry;
use model::{PodUid, pod};

use crate::copy::ApiCopy;

/// The boards that the syncer reads, and how far it has followed their changes.
#[derive(Debug)]
pub(crate) struct Boards {
    /// What the API server shall have.
    statuses: BoardReader<PodUid, StatusEntry>,
    /// What the API server has, as PodManager knows it.
    pods: BoardReader<PodUid, DesiredPod>,
    /// Whether containers may run.
    workers: BoardReader<PodUid, WorkerState>,
    seen: [Option<u64>; 3],
}

impl Boards {
    pub(crate) fn new(crew: &Crew<contract::StatusSyncer>) -> Self {
        Self { statuses: crew.board(), pods: crew.board(), workers: crew.board(), seen: [None; 3] }
    }

    /// A receiver per board; each tells that something changed.
    pub(crate) fn changes(&self) -> [actor::watch::Receiver<u64>; 3] {
        [self.statuses.changes(), self.pods.changes(), self.workers.changes()]
    }

    /// The pods with a row that changed since the last call; `None`: all must be looked at.
    pub(crate) fn changed(&mut self) -> Option<BTreeSet<PodUid>> {
        let [statuses, pods, workers] = &mut self.seen;
        let changed = [self.statuses.changed(statuses), self.pods.changed(pods), self.workers.changed(workers)];
        let all: Option<Vec<_>> = changed.into_iter().collect();
        Some(all?.into_iter().flatten().collect())
    }

    /// The pods that have a status.
    pub(crate) fn with_status(&self) -> impl Iterator<Item = PodUid> {
        self.statuses.snapshot().into_keys()
    }

    pub(crate) fn status(&self, uid: &PodUid) -> Option<Arc<StatusEntry>> {
        self.statuses.get(uid)
    }

    /// `None`: the pod has no status, or is not desired any more.
    pub(crate) fn rows(&self, uid: &PodUid) -> Option<PodRows> {
        self.rows_with(uid, self.status(uid)?)
    }

    /// As [`Self::rows`], with a status that was read before.
    pub(crate) fn rows_with(&self, uid: &PodUid, entry: Arc<StatusEntry>) -> Option<PodRows> {
        Some(PodRows { entry, desired: self.pods.get(uid)?, worker: self.workers.get(uid) })
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct PodRows {
    pub(crate) entry: Arc<StatusEntry>,
    pub(crate) desired: Arc<DesiredPod>,
    pub(crate) worker: Option<Arc<WorkerState>>,
}

impl PodRows {
    /// Whether a container of the pod could be running (pod-lifecycle 2.7): only its worker knows; one that was refused has
    /// no worker.
    pub(crate) fn may_run(&self) -> bool {
        match &self.worker {
            Some(worker) => worker.phase < WorkerPhase::Terminated,
            None => self.desired.rejected.is_none(),
        }
    }

    /// Whether this daemon has looked at the pod itself, so that its status is more than a memory of an earlier one.
    pub(crate) fn is_confirmed(&self) -> bool {
        let synced = self.worker.as_ref().is_some_and(|w| w.synced_at.is_set() || !self.may_run());
        synced || self.desired.rejected.is_some()
    }

    /// Whether the object in the API is the pod itself: mirrors are never finalised through their status.
    pub(crate) fn is_api_pod(&self) -> bool {
        self.desired.source == Source::Api && !pod::is_mirror(&self.desired.pod)
    }

    /// Whether the status to be sent is that of a pod that has ended.
    pub(crate) fn is_terminal(&self) -> bool {
        self.entry.is_terminal()
    }

    /// The API's copy as the board of desired pods has it; `None` for a static pod without a mirror.
    pub(crate) fn api_copy(&self) -> Option<ApiCopy> {
        match self.desired.source {
            Source::Api => Some(ApiCopy::of(self.desired.pod.clone())),
            Source::File | Source::Http | Source::Unknown => self.desired.mirror.clone().map(ApiCopy::of),
        }
    }
}
