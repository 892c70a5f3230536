//! Objects that stay in the API long after their pods have ended are reported now and then.

use std::time::Duration;

use tokio::time::Instant;

/// An object that is still there so long after its pod ended is worth a line in the log.
const OVERDUE: Duration = Duration::from_secs(30);
/// And again after this time.
const OVERDUE_AGAIN: Duration = Duration::from_secs(300);

/// How long the object of a pod is there that is to be deleted and has ended.
#[derive(Debug, Default)]
pub(super) struct Overdue {
    /// Since when it should go, and when to report (again) that it is still there.
    ended: Option<(Instant, Instant)>,
}

impl Overdue {
    /// The pod has not ended, or is not to be deleted.
    pub(super) fn reset(&mut self) {
        self.ended = None;
    }

    /// How long it is there already, when a report is due. `quiet`: nothing is reported now.
    pub(super) fn report(&mut self, now: Instant, quiet: bool) -> Option<Duration> {
        let (since, report_at) = self.ended.get_or_insert((now, now + OVERDUE));
        if now < *report_at || quiet {
            return None;
        }
        *report_at = now + OVERDUE_AGAIN;
        Some(now.duration_since(*since))
    }
}
