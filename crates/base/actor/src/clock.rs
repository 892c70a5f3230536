//! The only source of time for actors.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Where virtual time starts: 2026-01-01T00:00:00Z, in nanoseconds since the epoch.
const VIRTUAL_START: i64 = 1_767_225_600_000_000_000;

/// Time as actors see it: tokio's monotonic clock, and a wall clock that is virtual in tests.
#[derive(Debug, Clone)]
pub struct Clock {
    /// Of a clock of a test: when it began, and by how much somebody has set its wall time since.
    simulated: Option<(Instant, Arc<AtomicI64>)>,
}

impl Clock {
    pub(crate) fn system() -> Self {
        Clock { simulated: None }
    }

    /// Wall time starts at a fixed moment and moves only with tokio's (paused) clock, and with [`Clock::set_by`].
    pub(crate) fn simulated() -> Self {
        Clock { simulated: Some((Instant::now(), Arc::default())) }
    }

    /// Somebody sets the wall clock of a test forward or, by less than nothing, back, by so many nanoseconds. The machine's own clock
    /// is not ours to set: there it does nothing.
    pub fn set_by(&self, nanos: i64) {
        if let Some((_, set)) = &self.simulated {
            set.fetch_add(nanos, Ordering::Relaxed);
        }
    }

    /// Monotonic time; stands still in tests until every task waits.
    pub fn now(&self) -> Instant {
        Instant::now()
    }

    /// Wall time, in nanoseconds since 1970-01-01T00:00:00Z.
    pub fn unix_nanos(&self) -> i64 {
        match &self.simulated {
            Some((start, set)) => {
                VIRTUAL_START.saturating_add(nanos(start.elapsed())).saturating_add(set.load(Ordering::Relaxed))
            }
            None => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, nanos),
        }
    }

    /// Completes `d` from now.
    pub async fn sleep(&self, d: Duration) {
        tokio::time::sleep(d).await
    }

    /// Completes at `at`.
    pub async fn sleep_until(&self, at: Instant) {
        tokio::time::sleep_until(at).await
    }
}

fn nanos(d: Duration) -> i64 {
    i64::try_from(d.as_nanos()).unwrap_or(i64::MAX)
}
