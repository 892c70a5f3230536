//! Notes what happens to the pod, for `bosun why` and `bosun timeline`. What is noted is on the board at once, also while a step
//! waits; nobody decides by it.

use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use contract::board::BoardPoster;
use contract::pod_worker::KillRequest;
use model::core::PodStatus;
use model::history::{PodHistory, Reason, What};
use model::{PodUid, Timestamp};
use pod_history::New;
use pod_plan::PodPlan;
use ports::journal::Journal;

mod decisions;

/// Failures that repeat are written to the journal this often.
const SAVE_AGAIN_NS: i64 = 30_000_000_000;

/// The history of one pod. Shared by a step and its actor.
#[derive(Clone, Debug)]
pub(crate) struct Chronicle(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    uid: PodUid,
    row: BoardPoster<PodUid, PodHistory>,
    /// As the board has it.
    history: RefCell<Arc<PodHistory>>,
    /// Of the decisions of the latest plan.
    plan: Cell<u64>,
    /// The latest status said so.
    ready: Cell<Option<bool>>,
    /// Why the step under way fails has been told.
    told: Cell<bool>,
    unsaved: Cell<bool>,
    saved_at: Cell<Timestamp>,
}

fn key(uid: &PodUid) -> String {
    format!("history/{uid}")
}

impl Chronicle {
    /// Goes on with what an earlier worker of this process posted.
    pub(crate) fn new(uid: PodUid, row: BoardPoster<PodUid, PodHistory>) -> Self {
        let history = row.get(&uid).unwrap_or_default();
        Chronicle(Rc::new(Inner {
            uid,
            row,
            history: RefCell::new(history),
            plan: Cell::new(0),
            ready: Cell::new(None),
            told: Cell::new(false),
            unsaved: Cell::new(false),
            saved_at: Cell::new(Timestamp::ZERO),
        }))
    }

    /// Nothing is known of the pod in this process: the journal may have more.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.history.borrow().transitions.is_empty()
    }

    /// The line that an earlier daemon left. An unreadable one is as good as none: nothing hangs on it.
    pub(crate) fn load(journal: &dyn Journal, uid: &PodUid) -> Option<PodHistory> {
        let bytes = match journal.load(&key(uid)) {
            Ok(bytes) => bytes?,
            Err(e) => {
                tracing::debug!(%uid, error = %e, "the pod's history is not read");
                return None;
            }
        };
        let read = pod_history::from_bytes(&bytes);
        if read.is_none() {
            tracing::warn!(%uid, "the pod's history is damaged, it begins afresh");
        }
        read
    }

    /// The worker begins, with what the journal had.
    pub(crate) fn begin_life(&self, from_journal: Option<PodHistory>, now: Timestamp) {
        self.change(|history| {
            if let Some(old) = from_journal.filter(|_| history.transitions.is_empty()) {
                *history = old;
            }
            pod_history::close_open(history);
            if !history.transitions.is_empty() {
                pod_history::note(history, New::of_pod(What::Resumed), now);
            }
        });
        let was = |t: &&model::history::Transition| matches!(t.what, What::Ready | What::NotReady);
        let ready = self.0.history.borrow().transitions.iter().rfind(was).map(|t| t.what == What::Ready);
        self.0.ready.set(ready);
    }

    /// The first step of all begins.
    pub(crate) fn taken(&self, now: Timestamp) {
        if self.is_empty() {
            self.note(New::of_pod(What::Taken), now);
        }
    }

    /// Whether the pod waits for another one of its name.
    pub(crate) fn turn(&self, waits: bool, now: Timestamp) {
        let is_open = pod_history::open(&self.0.history.borrow()).any(|t| t.what == What::Turn);
        match (waits, is_open) {
            (true, false) => self.begin(What::Turn, "", now),
            (false, true) => self.end(What::Turn, "", Ok(()), now),
            _ => {}
        }
    }

    pub(crate) fn end_asked(&self, kill: &KillRequest, now: Timestamp) {
        let text = kill.reason.as_ref().map(|(reason, message)| format!("{reason}: {message}")).unwrap_or_default();
        let reason = match (&kill.reason, kill.deleted) {
            (Some(_), _) => Reason::Killed,
            (None, true) => Reason::Deleted,
            (None, false) => Reason::RanToEnd,
        };
        self.note(New { reason, text: &text, ..New::of_pod(What::EndAsked) }, now);
    }

    /// A step begins.
    pub(crate) fn step(&self) {
        self.0.told.set(false);
    }

    /// A step failed; what has been told is not told again.
    pub(crate) fn step_failed(&self, message: &str, now: Timestamp) {
        if !self.0.told.get() {
            self.failed(What::Step, "", message, now);
        }
    }

    pub(crate) fn note(&self, new: New<'_>, now: Timestamp) {
        self.change(|history| pod_history::note(history, new, now));
    }

    pub(crate) fn begin(&self, what: What, of: &str, now: Timestamp) {
        self.change(|history| pod_history::begin(history, what, of, now));
    }

    pub(crate) fn end(&self, what: What, of: &str, outcome: Result<(), &str>, now: Timestamp) {
        if outcome.is_err() {
            self.0.told.set(true);
        }
        self.change(|history| pod_history::end(history, what, of, outcome, now));
    }

    /// What failed at once.
    pub(crate) fn failed(&self, what: What, of: &str, text: &str, now: Timestamp) {
        self.0.told.set(true);
        self.change(|history| {
            pod_history::begin(history, what, of, now);
            pod_history::end(history, what, of, Err(text), now);
        });
    }

    pub(crate) fn was_done(&self, what: What, of: &str) -> bool {
        pod_history::was_done(&self.0.history.borrow(), what, of)
    }

    /// The decisions of a plan, when they are not those of the plan before.
    pub(crate) fn decide(&self, plan: &PodPlan, now: Timestamp) {
        let mut hasher = DefaultHasher::new();
        let mut any = false;
        decisions::each(plan, |decided, at| {
            any = true;
            let key = (decided.what, decided.reason, decided.of, decided.number, decided.lasts_ms, decided.text);
            (key, at).hash(&mut hasher);
        });
        let digest = hasher.finish();
        if self.0.plan.replace(digest) == digest || !any {
            return;
        }
        self.change(|history| {
            decisions::each(plan, |decided, at| pod_history::note(history, decided, at.unwrap_or(now)));
        });
    }

    pub(crate) fn status(&self, status: &PodStatus, now: Timestamp) {
        let conditions = status.conditions.as_deref().unwrap_or_default();
        let Some(ready) = conditions.iter().find(|c| c.type_ == "Ready").map(|c| c.status == "True") else { return };
        // That a pod is not ready while it starts is no news.
        let known = self.0.ready.replace(Some(ready)).unwrap_or(false);
        if known != ready {
            self.note(New::of_pod(if ready { What::Ready } else { What::NotReady }), now);
        }
    }

    fn change(&self, change: impl FnOnce(&mut PodHistory)) {
        let mut history = self.0.history.borrow_mut();
        change(Arc::make_mut(&mut history));
        self.0.unsaved.set(true);
        self.0.row.post(self.0.uid.clone(), history.clone());
    }

    /// Hands the line to the journal, which writes it with the next of its batches: no step waits for it. A step that keeps
    /// failing does not make it write for ever.
    pub(crate) fn save(&self, journal: &dyn Journal, failed: bool, now: Timestamp) {
        let early = failed && now.nanos_since(self.0.saved_at.get()) < SAVE_AGAIN_NS;
        if early || !self.0.unsaved.replace(false) {
            return;
        }
        self.0.saved_at.set(now);
        match pod_history::to_bytes(&self.0.history.borrow()) {
            Ok(bytes) => journal.put_soon(&key(&self.0.uid), Some(bytes)),
            Err(e) => tracing::warn!(uid = %self.0.uid, error = %e, "the pod's history is not written"),
        }
    }

    /// Removes the line of a pod that is done.
    pub(crate) fn forget(&self, journal: &dyn Journal) {
        self.0.unsaved.set(false);
        journal.put_soon(&key(&self.0.uid), None);
    }
}
