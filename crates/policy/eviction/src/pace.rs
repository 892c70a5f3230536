//! When to look again. A kubelet looks every ten seconds; memory can be gone in one.

use std::time::Duration;

use crate::signal::{Resource, Signals, Threshold};

/// Pause between two looks while nothing is about to run short.
pub const LONGEST: Duration = Duration::from_secs(10);
/// The same on a machine whose kernel does not tell when tasks wait for memory.
pub const UNWARNED: Duration = Duration::from_secs(1);
/// Shortest pause between two looks.
pub const SHORTEST: Duration = Duration::from_millis(100);

/// Pause after a look: half of the time after which memory will have fallen to a threshold, at the rate at which it fell
/// since the look before (`before`: how long ago that was, and what it saw); `longest` at most.
#[must_use]
pub fn next_look(
    thresholds: &[Threshold],
    before: Option<(Duration, &Signals)>,
    seen: &Signals,
    longest: Duration,
) -> Duration {
    let Some((ago, before)) = before else { return longest };
    let of_memory = thresholds.iter().filter(|t| t.signal.resource() == Resource::Memory);
    let pauses = of_memory.filter_map(|t| {
        let (then, now) = (before.get(&t.signal)?, seen.get(&t.signal)?);
        let (fell, left) =
            (then.available.saturating_sub(now.available), now.available.saturating_sub(t.below.at(now.capacity)));
        let (fell, left) = (u64::try_from(fell).ok()?, u64::try_from(left).ok()?);
        (fell > 0 && left > 0).then(|| pause(ago, fell, left))
    });
    pauses.min().unwrap_or(longest).clamp(SHORTEST, longest)
}

#[allow(clippy::cast_precision_loss, reason = "a pause need not be exact")]
fn pause(ago: Duration, fell: u64, left: u64) -> Duration {
    Duration::try_from_secs_f64(ago.as_secs_f64() * left as f64 / fell as f64 / 2.0).unwrap_or(LONGEST)
}
