//! The sync of one pod's status with the API server: what the server has, which request is under way, and what is due by the
//! boards. Pure: no clock, no I/O.

use std::time::Duration;

use contract::status::StatusEntry;
use model::core::{ContainerStatus, PodStatus};
use tokio::time::Instant;

mod attempts;
mod overdue;
mod rows;
mod server;

pub(crate) use attempts::{Attempts, Trouble};
pub(crate) use rows::{Boards, PodRows};
pub(crate) use server::{Removal, ServerState};

use overdue::Overdue;

use crate::copy::ApiCopy;
use crate::request::{Accepted, difference, is_deletable};

/// A worker that has just published the end of its pod publishes in the next moment that nothing runs any more: the end is
/// then sent as a whole, and not first without its phase.
const END_TO_COME: Duration = Duration::from_millis(250);

/// Which pod goes first when not all can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// The end of a pod, its removal, or Ready turning over.
    First,
    /// All else.
    Then,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct PodSync {
    /// UID of the object in the API that all this is about: mirrors come and go while their static pod stays.
    object: Option<String>,
    pub(crate) server: ServerState,
    pub(crate) attempts: Attempts,
    pub(crate) removal: Removal,
    pub(crate) line: JournalLine,
    /// Version that was seen last on the status board, and when first.
    arrived: Option<(u64, Instant)>,
    /// When to look again though nothing happens.
    pub(crate) wake_at: Option<Instant>,
    /// The status board has had this pod.
    pub(crate) shown: bool,
    overdue: Overdue,
}

/// The pod's line in the journal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JournalLine {
    /// Version that it holds.
    pub(crate) saved: Option<u64>,
    /// Version that an earlier life of the daemon left in it: sent once the pod's worker has looked itself.
    pub(crate) left_over: Option<u64>,
}

impl PodSync {
    /// Whether something of this pod must go to the API now, and how soon. `audit`: differences that somebody else made in
    /// the API count too. `calm_until`: until then the daemon is young, and pods that it found ready are not reported unready
    /// while a verdict of their probes is missing.
    pub(crate) fn due(
        &mut self,
        rows: &PodRows,
        now: Instant,
        audit: bool,
        calm_until: Option<Instant>,
    ) -> Option<Urgency> {
        self.wake_at = None;
        let version = rows.entry.version;
        if self.arrived.is_none_or(|(seen, _)| seen != version) {
            self.arrived = Some((version, now));
        }
        if self.attempts.must_wait(version, now) {
            self.wake_at = self.attempts.retry_at.filter(|_| self.attempts.in_flight.is_none());
            return None;
        }
        self.server.drop_old_answer(rows, now);
        let copy = self.server.newest(rows)?;
        self.follow_object(&copy);
        self.removal.give_up_waiting(now);
        if self.removal.is_over(&copy) || (self.line.left_over == Some(version) && !rows.is_confirmed()) {
            return None;
        }
        if let Some(at) = self.earliest(rows, &copy, calm_until).filter(|at| *at > now) {
            self.wake_at = Some(at);
            return None;
        }
        if self.is_pending(rows) || (rows.is_api_pod() && is_deletable(&rows.entry, &copy)) {
            return Some(urgency(rows, &copy));
        }
        (audit && self.differs(rows, &copy)).then_some(Urgency::Then)
    }

    /// When the status may be sent, where it is better to wait for what comes next.
    fn earliest(&self, rows: &PodRows, copy: &ApiCopy, calm_until: Option<Instant>) -> Option<Instant> {
        let end = self.arrived.map(|(_, at)| at + END_TO_COME).filter(|_| end_is_held_back(rows, copy));
        let verdict = calm_until.filter(|_| self.server.version.is_none() && lacks_verdict(&rows.entry, copy));
        end.max(verdict)
    }

    /// Begins anew when another object has taken the place of the one that statuses were sent to: it has none of them.
    fn follow_object(&mut self, copy: &ApiCopy) {
        if self.object.as_ref() == Some(&copy.uid) {
            return;
        }
        if self.object.is_some() {
            *self = Self { line: self.line, shown: true, arrived: self.arrived, ..Self::default() };
        }
        self.object = Some(copy.uid.clone());
    }

    /// Whether the API has all of this version.
    pub(crate) fn is_up_to_date(&self, entry: &StatusEntry) -> bool {
        self.server.version == Some(entry.version) && !self.server.phase_held_back
    }

    /// Whether nothing more is sent about the object that the rows show.
    pub(crate) fn is_over(&self, rows: &PodRows) -> bool {
        self.server.newest(rows).is_none_or(|copy| self.removal.is_over(&copy))
    }

    /// Whether the API can be sent more of the newest version than it has.
    fn is_pending(&self, rows: &PodRows) -> bool {
        self.server.version != Some(rows.entry.version) || (self.server.phase_held_back && !rows.may_run())
    }

    /// Whether somebody changed what is this node's to say. Each copy is compared once.
    fn differs(&mut self, rows: &PodRows, copy: &ApiCopy) -> bool {
        let at = (rows.entry.version, copy.version);
        if self.server.compared == Some(at) {
            return false;
        }
        let same = self.server.is_as_taken(copy)
            || difference(&rows.entry, copy, rows.may_run(), self.server.times.as_ref()).patch.is_none();
        if same {
            self.server.compared = Some(at);
        }
        !same
    }

    /// The API server has taken a status.
    pub(crate) fn accept(&mut self, accepted: Accepted, now: Instant) {
        self.removal.gone = None;
        if accepted.deleted {
            self.removal.deleted_at = Some(now);
        }
        self.server.accept(accepted, now);
    }

    /// How long the object of a pod that has ended is there already, and what it waits for; when a report is due.
    pub(crate) fn overdue(&mut self, rows: &PodRows, now: Instant) -> Option<(Duration, String)> {
        let has_ended = |copy: &ApiCopy| copy.is_terminal() || rows.is_terminal();
        let copy = self.server.newest(rows).filter(|copy| rows.is_api_pod() && copy.deleting && has_ended(copy));
        let Some(copy) = copy else {
            self.overdue.reset();
            return None;
        };
        // Of an outage there is one line for all.
        let waited = self.overdue.report(now, self.attempts.trouble == Some(Trouble::Connection))?;
        Some((waited, self.waits_for(rows, &copy, now)))
    }

    fn waits_for(&self, rows: &PodRows, copy: &ApiCopy, now: Instant) -> String {
        let seconds = |since: Instant| now.duration_since(since).as_secs();
        if let Some(since) = self.attempts.in_flight {
            return format!("a request that was sent {} s ago", seconds(since));
        }
        if let Some(at) = self.removal.deleted_at {
            let finalizers = copy.pod.metadata.finalizers.as_deref().unwrap_or_default().join(", ");
            return format!("the API server, which was told {} s ago; finalizers: [{finalizers}]", seconds(at));
        }
        match &rows.worker {
            _ if self.attempts.trouble.is_some() => {
                format!("the next attempt after {} failed", self.attempts.failures)
            }
            Some(worker) if !rows.entry.finished => {
                format!("its worker, {:?}: {}", worker.phase, worker.error.as_deref().unwrap_or("no error"))
            }
            None if !rows.entry.finished => "a worker: it has none".to_owned(),
            _ => "its turn".to_owned(),
        }
    }
}

/// Whether the phase of this end could not be sent now.
fn end_is_held_back(rows: &PodRows, copy: &ApiCopy) -> bool {
    rows.is_terminal() && !copy.is_terminal() && rows.may_run()
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

fn urgency(rows: &PodRows, copy: &ApiCopy) -> Urgency {
    let ends = rows.is_terminal() || rows.entry.finished;
    let flips = is_ready(Some(&rows.entry.status)) != is_ready(copy.pod.status.as_ref());
    if ends || flips { Urgency::First } else { Urgency::Then }
}
