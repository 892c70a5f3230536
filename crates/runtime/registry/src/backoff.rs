//! How long to wait before asking again.

use std::time::Duration;

/// Longest wait.
const MOST: Duration = Duration::from_secs(30);

/// Before the attempt after `failed` failed ones. `told`: what the host asked for. `chance`: 0 to 1, so that nodes that failed together
/// do not come together again.
pub(crate) fn wait(first: Duration, failed: u32, told: Option<Duration>, chance: f64) -> Duration {
    let doubled = first.saturating_mul(1 << failed.saturating_sub(1).min(16)).min(MOST);
    let spread = doubled.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
    told.unwrap_or_default().max(spread).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_a_host_may_ask_for_more() {
        let first = Duration::from_millis(200);
        let seconds = Duration::from_secs;
        let rows = [
            (1, None, 1.0, Duration::from_millis(200)),
            (1, None, 0.0, Duration::from_millis(100)),
            (3, None, 1.0, Duration::from_millis(800)),
            (40, None, 1.0, seconds(30)),
            (1, Some(seconds(7)), 0.0, seconds(7)),
            (1, Some(seconds(3600)), 0.0, seconds(30)),
        ];
        for (failed, told, chance, want) in rows {
            assert_eq!(wait(first, failed, told, chance), want);
        }
    }
}
