//! What is seen of a manager on probation.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use contract::board::BoardReader;
use contract::pod_manager::DesiredPod;
use contract::pod_worker::{WorkerPhase, WorkerState};
use contract::{MessageDeclaration, Role, Seat, Wiring};
use manager_probation::{Asked, Seen};
use model::PodUid;
use model::fared::Fared;
use remote_manager::{Life, Link};
use seam::{Boards, Feeds};
use tokio::time::Instant;

/// A row that is away for less may come back: boards change row by row.
const MISSED: Duration = Duration::from_secs(3);

/// Whom asks are counted for.
pub(super) struct Tenure {
    declared: &'static [MessageDeclaration],
    /// What was counted when it began.
    base: BTreeMap<&'static str, Fared>,
    /// How asks fared with the one before.
    before: BTreeMap<&'static str, Fared>,
}

impl Tenure {
    pub(super) fn of<R: Role>() -> Self {
        Tenure { declared: R::DECLARATION.answers, base: BTreeMap::new(), before: BTreeMap::new() }
    }

    /// Another one begins.
    pub(super) fn next(&mut self, seat: &Seat) {
        let now = seat.fared();
        self.before = now.iter().map(|(message, fared)| (*message, fared.since(&at(&self.base, message)))).collect();
        self.base = now;
    }

    pub(super) fn fared(&self, seat: &Seat) -> Vec<Asked> {
        let now = seat.fared();
        let asked = |m: &MessageDeclaration| Asked {
            message: m.name,
            deadline: m.deadline,
            before: at(&self.before, m.name),
            now: at(&now, m.name).since(&at(&self.base, m.name)),
        };
        self.declared.iter().map(asked).collect()
    }
}

fn at(counts: &BTreeMap<&'static str, Fared>, message: &str) -> Fared {
    counts.get(message).cloned().unwrap_or_default()
}

/// A probation.
pub(super) struct Trial {
    began: Instant,
    probation: Duration,
    /// A command began it: the one before is to have the place for good when it fails.
    pub(super) is_ordered: bool,
    rows: Rows,
}

impl Trial {
    /// Made before the place goes over: what is there now is to be there afterwards.
    pub(super) fn new<R: Role>(wiring: &Wiring, probation: Duration, is_ordered: bool) -> Self {
        Trial { began: Instant::now(), probation, is_ordered, rows: Rows::of::<R>(wiring) }
    }

    /// The place has gone over: its time begins.
    pub(super) fn begin(&mut self) -> Instant {
        self.began = Instant::now();
        self.began + self.probation
    }

    pub(super) fn lasted(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn seen(&mut self, link: &Link, asked: Vec<Asked>) -> Seen {
        let status = link.status();
        Seen {
            lasted: self.lasted(),
            probation: self.probation,
            away: None,
            lives: status.lives,
            asked,
            reminders: (status.reminders, status.unanswered_reminders),
            lies: status.lies(),
            late_rows: status.late_rows,
            rows: self.rows.look(),
        }
    }

    /// As [`Self::seen`], of one that is gone.
    pub(super) fn gone(&mut self, link: &Link, asked: Vec<Asked>, why: String) -> Seen {
        Seen { away: Some(why), ..self.seen(link, asked) }
    }
}

/// Why a process is not there.
pub(super) fn absence(life: &Life) -> String {
    match life {
        Life::Away(why) => why.clone(),
        Life::Up { .. } => "it comes and goes".to_owned(),
    }
}

/// Rows of running pods on the tables of a role: those that were there when it changed hands.
struct Rows {
    desired: BoardReader<PodUid, DesiredPod>,
    workers: BoardReader<PodUid, WorkerState>,
    feeds: Feeds,
    found: BTreeSet<(&'static str, PodUid)>,
    missed: BTreeMap<(&'static str, PodUid), Instant>,
}

impl Rows {
    fn of<R: Role>(wiring: &Wiring) -> Self {
        let of_pods: BTreeSet<&str> =
            R::DECLARATION.posts.iter().filter(|row| row.key == "PodUid").map(|row| row.name).collect();
        let mut feeds = Boards::own_feeds_of::<R>(wiring);
        feeds.retain(|(board, _)| of_pods.contains(board));
        let (desired, workers) = (wiring.board::<DesiredPod>(), wiring.board::<WorkerState>());
        let mut rows = Rows { desired, workers, feeds, found: BTreeSet::new(), missed: BTreeMap::new() };
        for (board, pod, is_there) in rows.changes() {
            if is_there && rows.runs(&pod) {
                rows.found.insert((board, pod));
            }
        }
        rows
    }

    fn changes(&mut self) -> Vec<(&'static str, PodUid, bool)> {
        let mut all = Vec::new();
        for (board, feed) in &mut self.feeds {
            let rows = feed.next().map(|changes| changes.rows).unwrap_or_default();
            let read = |(key, row): (Vec<u8>, Option<Vec<u8>>)| {
                Some((*board, serde_json::from_slice::<PodUid>(&key).ok()?, row.is_some()))
            };
            all.extend(rows.into_iter().filter_map(read));
        }
        all
    }

    /// Whether the pod is to be here and goes on being so.
    fn runs(&self, pod: &PodUid) -> bool {
        let syncs = |w: &WorkerState| w.phase == WorkerPhase::Syncing && !w.termination_requested;
        self.desired.get(pod).is_some() && self.workers.get(pod).is_some_and(|w| syncs(&w))
    }

    /// Rows that were found of pods that still run, and how many of them have been missing for some time.
    fn look(&mut self) -> (u64, u64) {
        for (board, pod, is_there) in self.changes() {
            let row = (board, pod);
            match is_there {
                true => drop(self.missed.remove(&row)),
                false if self.found.contains(&row) => drop(self.missed.entry(row).or_insert_with(Instant::now)),
                false => {}
            }
        }
        let running: Vec<_> = self.found.iter().filter(|(_, pod)| self.runs(pod)).collect();
        let is_gone = |row: &&&(&'static str, PodUid)| self.missed.get(**row).is_some_and(|at| at.elapsed() > MISSED);
        (running.len() as u64, running.iter().filter(is_gone).count() as u64)
    }
}
