//! When the status is due (node-and-resources 8.2).

use std::time::Duration;

/// When the status was reported last, and when it is due again without a change. Instants are time since any fixed start.
#[derive(Clone, Debug, PartialEq)]
pub struct Reporting {
    every: Duration,
    last: Option<Duration>,
    period: Duration,
}

impl Reporting {
    /// Nothing was reported yet. `every` is `nodeStatusReportFrequency`.
    #[must_use]
    pub fn new(every: Duration) -> Self {
        Self { every, last: None, period: every }
    }

    /// Whether a report is due though nothing changed.
    #[must_use]
    pub fn is_due(&self, now: Duration) -> bool {
        self.last.is_none_or(|last| now.saturating_sub(last) >= self.period)
    }

    /// Notes a report. After a change the next one is shifted by up to half a period, `random` being from 0 to 1, so that
    /// nodes that changed together do not report together for ever.
    pub fn reported(&mut self, now: Duration, changed: bool, random: f64) {
        self.last = Some(now);
        self.period = if changed { self.every.mul_f64(0.5 + random.clamp(0.0, 1.0)) } else { self.every };
    }
}
