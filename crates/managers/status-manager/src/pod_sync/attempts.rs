//! The requests about one pod: the one under way, and how soon another is tried after a failure.

use std::time::Duration;

use ports::api::ApiError;
use tokio::time::Instant;

/// First pause after a failure; doubled up to the ceiling.
const RETRY: Duration = Duration::from_millis(500);
/// As often as a kubelet tries again.
pub(super) const RETRY_MAX: Duration = Duration::from_secs(10);
/// A refusal that no waiting will mend is still tried again, in case somebody mends it.
const REFUSED_RETRY_MAX: Duration = Duration::from_secs(120);

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

impl Trouble {
    pub(crate) fn of(error: &ApiError) -> Self {
        match error {
            ApiError::Unreachable { .. } | ApiError::NotReady { .. } => Trouble::Connection,
            // Credentials and rights of a node come back by themselves.
            _ if error.is_transient() || error.is_unauthorized() || error.is_forbidden() => Trouble::Server,
            _ => Trouble::Refused,
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// A request is under way, since.
    pub(crate) in_flight: Option<Instant>,
    /// Version of the last attempt.
    pub(crate) version: Option<u64>,
    /// Attempts that failed since the last one that did not.
    pub(crate) failures: u32,
    pub(crate) retry_at: Option<Instant>,
    pub(crate) trouble: Option<Trouble>,
}

impl Attempts {
    pub(crate) fn begin(&mut self, version: u64, now: Instant) {
        self.in_flight = Some(now);
        self.version = Some(version);
    }

    /// Whether nothing can be sent now: a request is under way, or the last one failed a moment ago.
    pub(super) fn must_wait(&self, version: u64, now: Instant) -> bool {
        // What was refused says nothing about a newer status.
        let renewed = self.trouble == Some(Trouble::Refused) && self.version != Some(version);
        self.in_flight.is_some() || (self.retry_at.is_some_and(|at| at > now) && !renewed)
    }

    /// Waits before the next attempt. `chance` is in [0, 1); `asked`: the server's wish.
    pub(crate) fn back_off(&mut self, trouble: Trouble, asked: Option<Duration>, chance: f64, now: Instant) {
        let ceiling = if trouble == Trouble::Refused { REFUSED_RETRY_MAX } else { RETRY_MAX };
        let pause = RETRY.saturating_mul(1 << self.failures.min(16)).min(ceiling);
        // Between half and all of it, so that pods do not come back in step; never sooner than the server asks.
        let pause = pause.mul_f64(0.5 + chance / 2.0).max(asked.unwrap_or_default());
        self.failures = self.failures.saturating_add(1);
        self.retry_at = Some(now + pause);
        self.trouble = Some(trouble);
    }

    /// An attempt succeeded, or there is reason to think that the next one will.
    pub(crate) fn clear_trouble(&mut self) {
        self.failures = 0;
        self.retry_at = None;
        self.trouble = None;
    }
}
