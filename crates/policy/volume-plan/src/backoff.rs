//! Pauses between tries of one operation on one volume (node-and-resources 6.2).

use std::time::Duration;

/// First pause.
pub const FIRST: Duration = Duration::from_millis(500);
/// Longest pause.
pub const LAST: Duration = Duration::from_secs(122);

/// Back-off of one operation. Times are since any fixed start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    pause: Option<Duration>,
    until: Duration,
}

impl Backoff {
    /// How long until another try may be made; zero: now.
    #[must_use]
    pub fn wait(&self, now: Duration) -> Duration {
        self.until.saturating_sub(now)
    }

    /// A try failed.
    pub fn failed(&mut self, now: Duration) {
        let pause = self.pause.map_or(FIRST, |p| (p * 2).min(LAST));
        self.pause = Some(pause);
        self.until = now + pause;
    }

    /// A try was good.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}
