//! What the API server has of one pod's status, by its answers; and whether the object is still there.

use std::sync::Arc;
use std::time::Duration;

use model::core::Pod;
use pod_status::merge::KnownTimes;
use tokio::time::Instant;

use super::attempts::RETRY_MAX;
use super::rows::PodRows;
use crate::copy::ApiCopy;
use crate::request::Accepted;

/// An object that is still there then is deleted again: finalizers have kept it, or the server was restored to an older state.
const DELETE_AGAIN: Duration = Duration::from_secs(300);

/// The status that the API server has taken.
#[derive(Debug, Default)]
pub(crate) struct ServerState {
    /// Version that it has.
    pub(crate) version: Option<u64>,
    /// The terminal phase of that version was held back, as a container could run.
    pub(crate) phase_held_back: bool,
    /// Its answer, while the board has not caught up with it, and when it came.
    pub(crate) answer: Option<(ApiCopy, Instant)>,
    /// The pod with what it made of the last status it took: it may write some values in its own way.
    taken: Option<Arc<Pod>>,
    pub(crate) times: Option<KnownTimes>,
    /// Version of the status, and of the API's copy, that were compared last and need nothing.
    pub(crate) compared: Option<(u64, Option<u64>)>,
}

impl ServerState {
    pub(super) fn accept(&mut self, accepted: Accepted, now: Instant) {
        self.version = Some(accepted.version);
        self.phase_held_back = accepted.phase_held_back;
        self.taken = Some(accepted.copy.pod.clone());
        self.times = Some(accepted.times);
        self.answer = Some((accepted.copy, now));
    }

    /// Whether a copy has the status as the server wrote it when it took it.
    pub(super) fn is_as_taken(&self, copy: &ApiCopy) -> bool {
        self.taken.as_ref().is_some_and(|taken| taken.status == copy.pod.status)
    }

    /// The newest copy of the pod in the API.
    pub(crate) fn newest(&self, rows: &PodRows) -> Option<ApiCopy> {
        let on_board = rows.api_copy()?;
        match &self.answer {
            Some((answer, _)) if answer.is_newer_than(&on_board) => Some(answer.clone()),
            _ => Some(on_board),
        }
    }

    /// Forgets an answer that the board has caught up with, or should have long ago.
    pub(crate) fn drop_old_answer(&mut self, rows: &PodRows, now: Instant) {
        if self.answer.is_none() {
            return;
        }
        let on_board = rows.api_copy();
        let caught_up = on_board.as_ref().filter(|b| self.answer.as_ref().is_some_and(|(a, _)| a.is_same_as(b)));
        if let Some(copy) = caught_up {
            // One of the two is enough.
            self.taken = Some(copy.pod.clone());
        }
        self.answer.take_if(|(answer, at)| {
            let overtaken = on_board.as_ref().is_none_or(|b| !answer.is_newer_than(b));
            // A copy without a version never catches up.
            let numbered = on_board.as_ref().is_some_and(|b| b.version.is_some());
            overtaken || (numbered && now.duration_since(*at) >= RETRY_MAX)
        });
    }
}

/// The end of the object in the API.
#[derive(Debug, Default)]
pub(crate) struct Removal {
    /// The object is gone: its UID, and the version of the copy that the board showed then.
    pub(crate) gone: Option<(String, Option<u64>)>,
    /// When the object was deleted: for a while nothing more is sent about it, even while finalizers keep it.
    pub(crate) deleted_at: Option<Instant>,
}

impl Removal {
    /// Whether there is no object left in the API that a status could be sent to.
    pub(crate) fn is_over(&self, copy: &ApiCopy) -> bool {
        let gone = self.gone.as_ref().is_some_and(|(uid, version)| *uid == copy.uid && *version == copy.version);
        gone || self.deleted_at.is_some()
    }

    /// Lets an object that is still there long after its deletion be deleted again.
    pub(super) fn give_up_waiting(&mut self, now: Instant) {
        self.deleted_at.take_if(|at| now.duration_since(*at) >= DELETE_AGAIN);
    }
}
