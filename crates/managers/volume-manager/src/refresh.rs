//! When the volumes of a running pod are looked at again, and when their failures are reported. Pure.
//!
//! Nothing is polled: the board of the object store tells of changes, tokens say when they are to be asked for anew, and
//! every MountVolumes of a pod's worker brings new labels and annotations.

use std::collections::BTreeMap;
use std::time::Duration;

use model::Timestamp;

use crate::desired::Mounted;

/// First pause between tries; doubled for each further one.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause between tries after failures.
const LAST_PAUSE: Duration = Duration::from_secs(122);
/// A token that should have been renewed already is asked for again after this: its store tried just now.
const OVERDUE_PAUSE: Duration = Duration::from_secs(10);

/// What brought a try about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Occasion {
    /// The pod's worker asked.
    Asked,
    /// An object changed, or it was time.
    Refreshed,
}

/// What follows from a try that left these failures, by volume: whether they are reported, and the pause before the next try.
pub(crate) fn after(
    before: Option<&Mounted>,
    failures: &BTreeMap<String, String>,
    occasion: Occasion,
) -> (bool, Duration) {
    let same = before.filter(|b| b.reported == *failures && !failures.is_empty());
    match (same, occasion) {
        (None, _) => (true, FIRST_PAUSE),
        (Some(b), Occasion::Asked) => (false, b.pause),
        (Some(b), Occasion::Refreshed) => (true, (b.pause * 2).min(LAST_PAUSE)),
    }
}

/// How long until something is due.
pub(crate) fn wait_until(due: Timestamp, now: Timestamp) -> Duration {
    match u64::try_from(due.nanos_since(now)) {
        Ok(nanos) if nanos > 0 => Duration::from_nanos(nanos),
        _ => OVERDUE_PAUSE,
    }
}
