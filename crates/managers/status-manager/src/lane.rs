//! What is due for one pod, by the boards and by what the API server answered. Pure: no clock, no I/O.

use std::sync::Arc;
use std::time::Duration;

use contract::config_sources::Source;
use contract::pod_manager::DesiredPod;
use contract::pod_worker::{WorkerPhase, WorkerState};
use contract::status::StatusEntry;
use model::core::{ContainerStatus, PodStatus};
use model::pod;
use pod_status::merge::{KnownTimes, for_api};
use pod_status::wire::status_patch;
use tokio::time::Instant;

use crate::copy::ApiCopy;

/// First pause after a failure; doubled up to the ceiling.
const RETRY: Duration = Duration::from_millis(500);
/// As often as a kubelet tries again.
const RETRY_MAX: Duration = Duration::from_secs(10);
/// A refusal that no waiting will mend is still tried again, in case somebody mends it.
const REFUSED_RETRY_MAX: Duration = Duration::from_secs(120);

/// An object that is still there then is told to go again: finalizers have kept it, or the server was set back.
const DELETE_AGAIN: Duration = Duration::from_secs(300);
/// A worker that has just told the end of its pod says in the next moment that nothing runs any more: the end is then told
/// whole, and not first without its phase.
const END_TO_COME: Duration = Duration::from_millis(250);
/// An object that is still there so long after its pod ended is worth a line in the log.
const OVERDUE: Duration = Duration::from_secs(30);
/// And again after this time.
const OVERDUE_AGAIN: Duration = Duration::from_secs(300);

/// Which pod goes first when not all can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// The end of a pod, its removal, or Ready turning over.
    First,
    /// All else.
    Then,
}

/// How the last attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The server was not reached: over for all pods as soon as one gets through.
    Connection,
    /// The server is busy or broken.
    Server,
    /// The server refuses this request.
    Refused,
}

/// The pod as the three boards show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) entry: &'a Arc<StatusEntry>,
    pub(crate) desired: &'a DesiredPod,
    pub(crate) worker: Option<&'a WorkerState>,
}

impl Rows<'_> {
    /// Whether a container of the pod could be running (pod-lifecycle 2.7): only its worker knows; one that was refused has
    /// no worker.
    pub(crate) fn may_run(&self) -> bool {
        match self.worker {
            Some(worker) => worker.phase < WorkerPhase::Terminated,
            None => self.desired.rejected.is_none(),
        }
    }

    /// Whether this daemon has looked at the pod itself, so that its status is more than a memory of an earlier one.
    fn is_confirmed(&self) -> bool {
        self.desired.rejected.is_some() || self.worker.is_some_and(|w| w.synced_at.is_set() || !self.may_run())
    }
}

/// What the lane of one pod remembers.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// UID of the object in the API that all this is about: mirrors come and go while their static pod stays.
    pub(crate) object: Option<String>,
    /// Version that the API has.
    pub(crate) accepted: Option<u64>,
    /// Its terminal phase was held back, as a container could run.
    pub(crate) held: bool,
    /// Answer of the server that the board has not caught up with, and when it came.
    pub(crate) answer: Option<(ApiCopy, Instant)>,
    /// What the server made of the last status it took: it may write some values in its own way.
    pub(crate) settled: Option<u64>,
    /// Version of an API copy that was compared and needs nothing.
    pub(crate) compared: Option<(u64, Option<u64>)>,
    /// Version that was seen last, and when first.
    pub(crate) arrived: Option<(u64, Instant)>,
    /// When to look again though nothing happens.
    pub(crate) wake: Option<Instant>,
    /// A request is under way, since.
    pub(crate) flight: Option<Instant>,
    /// Version of the last attempt.
    pub(crate) tried: Option<u64>,
    pub(crate) tries: u32,
    pub(crate) retry_at: Option<Instant>,
    pub(crate) trouble: Option<Trouble>,
    /// Version that the journal holds.
    pub(crate) journaled: Option<u64>,
    /// Version that an earlier life of the daemon left in the journal: sent once the worker has looked itself.
    pub(crate) left_over: Option<u64>,
    /// The status board has had this pod.
    pub(crate) shown: bool,
    pub(crate) times: Option<KnownTimes>,
    /// The object is gone from the API; the copy that the board showed then.
    pub(crate) gone: Option<(String, Option<u64>)>,
    /// When the object was told to go: for a while nothing of it is said any more, finalizers or not.
    pub(crate) deleted: Option<Instant>,
    /// Since when the pod is to go and shows its end, and when to say (again) that it is still there.
    pub(crate) ended: Option<(Instant, Instant)>,
}

impl Lane {
    /// The newest copy of the pod in the API.
    pub(crate) fn newest(&self, rows: &Rows<'_>) -> Option<ApiCopy> {
        let on_board = ApiCopy::on_board(rows.desired)?;
        match &self.answer {
            Some((answer, _)) if answer.is_newer_than(&on_board) => Some(answer.clone()),
            _ => Some(on_board),
        }
    }

    /// Forgets an answer that the board has caught up with, or should have long ago.
    pub(crate) fn settle(&mut self, rows: &Rows<'_>, now: Instant) {
        let on_board = ApiCopy::on_board(rows.desired);
        let stale = |(answer, at): &(ApiCopy, Instant)| {
            let overtaken = on_board.as_ref().is_none_or(|b| !answer.is_newer_than(b));
            // A copy without a version never catches up.
            let numbered = on_board.as_ref().is_some_and(|b| b.version.is_some());
            overtaken || (numbered && now.duration_since(*at) >= RETRY_MAX)
        };
        self.answer.take_if(|answer| stale(answer));
    }

    /// Whether something of this pod must go to the API now, and how soon. `audit`: differences that somebody else made in
    /// the API count too. `calm_until`: until then the daemon is young, and pods that it found ready are not told unready for
    /// want of a verdict.
    pub(crate) fn due(
        &mut self,
        rows: &Rows<'_>,
        now: Instant,
        audit: bool,
        calm_until: Option<Instant>,
    ) -> Option<Urgency> {
        self.wake = None;
        let version = rows.entry.version;
        if self.arrived.is_none_or(|(seen, _)| seen != version) {
            self.arrived = Some((version, now));
        }
        // What was refused says nothing about a newer status.
        let renewed = self.trouble == Some(Trouble::Refused) && self.tried != Some(rows.entry.version);
        if self.flight.is_some() || (self.retry_at.is_some_and(|at| at > now) && !renewed) {
            return None;
        }
        self.settle(rows, now);
        let copy = self.newest(rows)?;
        self.meet(&copy);
        self.deleted.take_if(|at| now.duration_since(*at) >= DELETE_AGAIN);
        if self.is_over(&copy) {
            return None;
        }
        if self.left_over == Some(rows.entry.version) && !rows.is_confirmed() {
            return None;
        }
        let ready_at = [
            self.arrived.map(|(_, at)| at + END_TO_COME).filter(|_| end_is_held(rows, &copy)),
            calm_until.filter(|_| self.accepted.is_none() && lacks_verdict(rows.entry, &copy)),
        ];
        if let Some(at) = ready_at.into_iter().flatten().max().filter(|at| *at > now) {
            self.wake = Some(at);
            return None;
        }
        if self.is_pending(rows) || (is_api_pod(rows) && is_deletable(rows.entry, &copy)) {
            return Some(urgency(rows, &copy));
        }
        if audit && self.differs(rows, &copy) {
            return Some(Urgency::Then);
        }
        None
    }

    /// Another object has taken the place of the one that was told: it knows nothing yet.
    fn meet(&mut self, copy: &ApiCopy) {
        if self.object.as_ref() == Some(&copy.uid) {
            return;
        }
        if self.object.is_some() {
            let (journaled, left_over) = (self.journaled, self.left_over);
            *self = Self { journaled, left_over, shown: true, arrived: self.arrived, ..Self::default() };
        }
        self.object = Some(copy.uid.clone());
    }

    /// Whether there is nobody left in the API to tell.
    pub(crate) fn is_over(&self, copy: &ApiCopy) -> bool {
        let gone = self.gone.as_ref().is_some_and(|(uid, version)| *uid == copy.uid && *version == copy.version);
        gone || self.deleted.is_some()
    }

    /// Whether the API has all of this version.
    pub(crate) fn is_told(&self, entry: &StatusEntry) -> bool {
        self.accepted == Some(entry.version) && !self.held
    }

    /// Whether the API has not been told the newest version, or not all of it.
    pub(crate) fn is_pending(&self, rows: &Rows<'_>) -> bool {
        self.accepted != Some(rows.entry.version) || (self.held && !rows.may_run())
    }

    /// How long the object of a pod that has ended is there already, and what it waits for; when that is worth saying.
    pub(crate) fn overdue(&mut self, rows: &Rows<'_>, now: Instant) -> Option<(Duration, String)> {
        let copy = self.newest(rows).filter(|copy| is_api_pod(rows) && copy.deleting && shows_end(rows, copy));
        let Some(copy) = copy else {
            self.ended = None;
            return None;
        };
        let (since, say_at) = self.ended.get_or_insert((now, now + OVERDUE));
        // Of an outage there is one line for all.
        if now < *say_at || self.trouble == Some(Trouble::Connection) {
            return None;
        }
        let waited = now.duration_since(*since);
        *say_at = now + OVERDUE_AGAIN;
        Some((waited, self.waits_for(rows, &copy, now)))
    }

    fn waits_for(&self, rows: &Rows<'_>, copy: &ApiCopy, now: Instant) -> String {
        let seconds = |since: Instant| now.duration_since(since).as_secs();
        match (rows.worker, self.flight, self.deleted) {
            (_, Some(since), _) => format!("a request that was sent {} s ago", seconds(since)),
            (_, _, Some(at)) => {
                let finalizers = copy.pod.metadata.finalizers.as_deref().unwrap_or_default().join(", ");
                format!("the API server, which was told {} s ago; finalizers: [{finalizers}]", seconds(at))
            }
            _ if self.trouble.is_some() => format!("the next attempt after {} failed", self.tries),
            (Some(worker), ..) if !rows.entry.finished => {
                format!("its worker, {:?}: {}", worker.phase, worker.error.as_deref().unwrap_or("no error"))
            }
            (None, ..) if !rows.entry.finished => "a worker: it has none".to_owned(),
            _ => "its turn".to_owned(),
        }
    }

    /// Somebody changed what is this node's to say. Looked at once per copy.
    fn differs(&mut self, rows: &Rows<'_>, copy: &ApiCopy) -> bool {
        let at = (rows.entry.version, copy.version);
        if self.compared == Some(at) {
            return false;
        }
        if self.settled == Some(copy.fingerprint())
            || wanted(rows.entry, copy, rows.may_run(), self.times.as_ref()).patch.is_none()
        {
            self.compared = Some(at);
            return false;
        }
        true
    }

    /// Waits before the next attempt. `chance` is in [0, 1).
    pub(crate) fn back_off(&mut self, trouble: Trouble, asked: Option<Duration>, chance: f64, now: Instant) {
        let ceiling = if trouble == Trouble::Refused { REFUSED_RETRY_MAX } else { RETRY_MAX };
        let pause = RETRY.saturating_mul(1 << self.tries.min(16)).min(ceiling);
        // Between half and all of it, so that pods do not come back in step; never sooner than the server asks.
        let pause = pause.mul_f64(0.5 + chance / 2.0).max(asked.unwrap_or_default());
        self.tries = self.tries.saturating_add(1);
        self.retry_at = Some(now + pause);
        self.trouble = Some(trouble);
    }

    /// The way is free again.
    pub(crate) fn clear_trouble(&mut self) {
        self.tries = 0;
        self.retry_at = None;
        self.trouble = None;
    }
}

/// What the API should hold, and how it gets there.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// Patch of the status; `None`: the API says so already.
    pub(crate) patch: Option<serde_json::Value>,
    /// The terminal phase is held back.
    pub(crate) held: bool,
}

/// Compares the API's copy with the kept status.
pub(crate) fn wanted(entry: &StatusEntry, copy: &ApiCopy, may_run: bool, times: Option<&KnownTimes>) -> Wanted {
    let api = &copy.status();
    let mut kept = (*entry.status).clone();
    if let Some(times) = times {
        times.apply(&mut kept);
    }
    // A condition that is forced by the end of the pod changes when this version was made: the same on each attempt.
    let merged = for_api(api, &kept, may_run, entry.changed_at);
    let ends = |s: &PodStatus| pod::is_terminal_phase(s.phase.as_deref());
    Wanted { patch: status_patch(api, &merged), held: ends(&kept) && !ends(&merged) }
}

/// Whether the object in the API is the pod itself: mirrors are never finalised through their status.
pub(crate) fn is_api_pod(rows: &Rows<'_>) -> bool {
    rows.desired.source == Source::Api && !pod::is_mirror(&rows.desired.pod)
}

/// Whether the object of a pod of the API may be deleted (pod-lifecycle 9.8): it is to go, it shows its end, and its
/// worker is done.
pub(crate) fn is_deletable(entry: &StatusEntry, copy: &ApiCopy) -> bool {
    copy.deleting && copy.is_terminal() && entry.finished
}

/// Whether the pod has ended, by the API or by what is to be told.
fn shows_end(rows: &Rows<'_>, copy: &ApiCopy) -> bool {
    copy.is_terminal() || pod::is_terminal_phase(rows.entry.status.phase.as_deref())
}

/// Whether the phase of this end could not be told now.
fn end_is_held(rows: &Rows<'_>, copy: &ApiCopy) -> bool {
    pod::is_terminal_phase(rows.entry.status.phase.as_deref()) && !copy.is_terminal() && rows.may_run()
}

/// Whether the pod is ready in the API, and here it is not, though the very same containers run: that is how a pod looks
/// whose probes have not been tried yet in this life of the daemon.
fn lacks_verdict(entry: &StatusEntry, copy: &ApiCopy) -> bool {
    let running = |status: &PodStatus| -> Vec<String> {
        let lists = [&status.init_container_statuses, &status.container_statuses];
        let runs = |c: &&ContainerStatus| c.state.as_ref().is_some_and(|s| s.running.is_some());
        lists.into_iter().flatten().flatten().filter(runs).filter_map(|c| c.container_id.clone()).collect()
    };
    let Some(api) = &copy.pod.status else { return false };
    is_ready(Some(api))
        && !is_ready(Some(&entry.status))
        && !running(api).is_empty()
        && running(api) == running(&entry.status)
}

fn is_ready(status: Option<&PodStatus>) -> bool {
    let conditions = status.and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True")
}

fn urgency(rows: &Rows<'_>, copy: &ApiCopy) -> Urgency {
    let ends = pod::is_terminal_phase(rows.entry.status.phase.as_deref()) || rows.entry.finished;
    let flips = is_ready(Some(&rows.entry.status)) != is_ready(copy.pod.status.as_ref());
    if ends || flips { Urgency::First } else { Urgency::Then }
}
