//! Spans on their way out: bounded, and never waited for.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::trace::{LOST_FULL, SPANS_LOST};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::finished::Finished;

/// How much waits, and how much goes at once (the defaults of OpenTelemetry's batch span processor, which a kubelet keeps).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Spans that wait at most; newer ones are lost.
    pub queue: usize,
    /// Spans of one batch at most.
    pub batch: usize,
    /// How long a batch is waited for that is not full.
    pub gather: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { queue: 2048, batch: 512, gather: Duration::from_secs(5) }
    }
}

/// Spans that have ended, in the order of their ends.
#[derive(Debug)]
pub struct Queue {
    limits: Limits,
    spans: Mutex<VecDeque<Finished>>,
    /// The first one came, or a batch is full.
    came: Notify,
}

impl Queue {
    /// An empty one.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, spans: Mutex::default(), came: Notify::new() }
    }

    /// Never waits: what has no room is lost, and counted.
    pub(crate) fn put(&self, span: Finished) {
        let count = {
            let mut spans = self.spans();
            if spans.len() >= self.limits.queue {
                SPANS_LOST.with_label_values(&[LOST_FULL]).inc();
                return;
            }
            spans.push_back(span);
            spans.len()
        };
        if count == 1 || count == self.limits.batch {
            self.came.notify_one();
        }
    }

    /// The next batch, which is never empty: a full one at once, another one when it has gathered for its time. For one
    /// caller at a time.
    pub async fn batch(&self) -> Vec<Finished> {
        self.until(1).await;
        // What came until the end of the wait goes, however few.
        let _late = timeout(self.limits.gather, self.until(self.limits.batch)).await;
        let mut spans = self.spans();
        let count = spans.len().min(self.limits.batch);
        spans.drain(..count).collect()
    }

    async fn until(&self, count: usize) {
        while self.spans().len() < count {
            self.came.notified().await;
        }
    }

    fn spans(&self) -> MutexGuard<'_, VecDeque<Finished>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
