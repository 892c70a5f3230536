//! State of the relist: what it waits for, and when the next one is due. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use actor::SpawnHandle;
use contract::runtime::{CallError, CallErrorKind, RuntimeInfo};
use model::runtime::EventTier;
use model::{PodUid, Timestamp};
use tokio::time::Instant;

use crate::deps::Config;
use crate::requests::Reply;

/// State of the relist.
#[derive(Debug)]
pub(crate) struct Relisting {
    /// This generation has been through one.
    pub(crate) done: bool,
    /// The one under way found what events had not told.
    pub(crate) disagreed: bool,
    pub(crate) running: Option<Run>,
    pub(crate) again: bool,
    /// Asked for since the one under way began.
    pub(crate) waiting: Vec<Reply>,
    period: Duration,
    pub(crate) timer: Option<SpawnHandle>,
    /// Start of the last one of this generation.
    pub(crate) began: Option<Instant>,
}

/// A relist under way.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    /// Checks on the events; others have a reason to expect changes.
    pub(crate) audit: bool,
    /// Pods whose inspections it waits for.
    pub(crate) open: BTreeSet<PodUid>,
    pub(crate) failed: Option<CallError>,
    pub(crate) serving: Vec<Reply>,
}

impl Relisting {
    pub(crate) fn new(period: Duration) -> Self {
        let (done, disagreed, again) = (false, false, false);
        Self { done, disagreed, running: None, again, waiting: Vec::new(), period, timer: None, began: None }
    }

    /// The relist under way, if there is one, waits for inspections of these too.
    pub(crate) fn open(&mut self, pods: impl IntoIterator<Item = PodUid>) {
        if let Some(run) = &mut self.running {
            run.open.extend(pods);
        }
    }

    /// The relist under way need not wait for the pod; answers whether it waits for none now.
    pub(crate) fn close(&mut self, uid: &PodUid) -> bool {
        self.running.as_mut().is_some_and(|run| run.open.remove(uid) && run.open.is_empty())
    }

    /// Whether a relist is under way that waits for no pod.
    pub(crate) fn is_over(&self) -> bool {
        self.running.as_ref().is_some_and(|run| run.open.is_empty())
    }

    /// The pod could not be inspected.
    pub(crate) fn fail(&mut self, uid: &PodUid) {
        if let Some(run) = self.running.as_mut().filter(|run| run.open.contains(uid)) {
            let message = format!("cannot inspect pod {uid}");
            run.failed.get_or_insert(CallError::new(CallErrorKind::Failed, message));
        }
    }

    /// Period until the next relist; doubles while events and relists agree.
    pub(crate) fn next_period(&mut self, config: &Config, info: &RuntimeInfo) -> Duration {
        if info.tier == EventTier::Relist || info.stale {
            return config.relist_without_events;
        }
        let now = if self.disagreed { config.relist_at_first } else { self.period };
        self.period = (now * 2).min(config.relist_at_most);
        now
    }
}
