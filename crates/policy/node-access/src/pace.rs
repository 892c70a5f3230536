//! Pauses between tries, and how often strangers may make a node ask the API server.

use std::time::Duration;

/// Tries of one review.
const TRIES: u32 = 5;
/// First pause.
const FIRST: Duration = Duration::from_millis(500);

/// Pause before the next try, after `failed` of them; `None`: no more tries. `random` is from 0 to 1.
#[must_use]
pub fn pause(failed: u32, random: f64) -> Option<Duration> {
    if failed == 0 || failed >= TRIES {
        return None;
    }
    let growth = 1.5_f64.powi(i32::try_from(failed - 1).unwrap_or(0));
    Some(FIRST.mul_f64(growth * (1.0 + 0.2 * random.clamp(0.0, 1.0))))
}

/// A bucket of permissions to ask: a flood of made-up tokens must not use up what the node may ask of the API server.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    per_second: f64,
    most: f64,
    left: f64,
    at: Duration,
}

impl Pace {
    /// A full bucket of `most`, refilled at a rate.
    #[must_use]
    pub fn new(per_second: u32, most: u32) -> Self {
        Self { per_second: per_second.into(), most: most.into(), left: most.into(), at: Duration::ZERO }
    }

    /// Takes one permission, if there is one.
    pub fn take(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = now.max(self.at);
        self.left = (self.left + passed * self.per_second).min(self.most);
        let some = self.left >= 1.0;
        if some {
            self.left -= 1.0;
        }
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_tries_with_growing_pauses() {
        let ms = |failed| pause(failed, 0.0).map(|d| d.as_millis());
        assert_eq!([1, 2, 3, 4].map(ms), [Some(500), Some(750), Some(1125), Some(1687)]);
        assert_eq!(pause(5, 0.0), None);
        assert_eq!(pause(1, 1.0), Some(Duration::from_millis(600)));
    }

    #[test]
    fn a_bucket_gives_what_it_holds_and_is_refilled() {
        let mut pace = Pace::new(2, 3);
        let at = Duration::from_millis;
        assert_eq!([0; 4].map(|_| pace.take(at(0))), [true, true, true, false]);
        assert!(!pace.take(at(400)));
        assert!(pace.take(at(500)));
        assert!(!pace.take(at(0)), "time does not go back");
        assert_eq!([0; 4].map(|_| pace.take(at(60_000))), [true, true, true, false]);
    }
}
