//! What outlives the recorder.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::event::EventEntry;
use model::Timestamp;
use model::event::NodeEvent;
use tokio::time::Instant;

use crate::correlate::{Correlator, Moment, Verdict};

/// What was told so far. Made by the wiring, so that a recorder that dies again and again tells no more of one pod than one that lives; a clone is
/// the same memory.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    correlator: Correlator,
    /// When the first event came.
    began: Option<Instant>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Correlator::recall`]: the lines are those of a recorder that had another memory.
    pub(crate) fn recall<'a>(&self, lines: impl IntoIterator<Item = &'a EventEntry>) {
        self.lock().correlator.recall(lines);
    }

    /// As [`Correlator::judge`].
    pub(crate) fn judge(&self, event: &NodeEvent, wall: Timestamp, now: Instant) -> Verdict {
        let mut told = self.lock();
        let uptime = now.saturating_duration_since(*told.began.get_or_insert(now));
        told.correlator.judge(event, Moment { wall, uptime })
    }
}
