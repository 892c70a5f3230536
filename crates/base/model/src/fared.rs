//! How asks of one message fared: counts that can be subtracted from each other.

use std::time::Duration;

/// Times are counted by powers of two: the last bucket holds what took longer than half an hour.
const BUCKETS: usize = 32;

/// How many asks were answered and how, and how long that took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fared {
    /// Answers that were no failures.
    pub well: u64,
    /// Answers that say that what was asked for failed.
    pub failed: u64,
    /// Whoever worked on it died.
    pub crashed: u64,
    /// No answer in time.
    pub expired: u64,
    /// Nobody took it.
    pub unheard: u64,
    /// How long answers took: bucket `n` counts those of less than `2^n` microseconds.
    took: [u64; BUCKETS],
    /// How long the oldest one waits that is not answered yet; not a count.
    pub oldest: Option<Duration>,
}

impl Fared {
    /// An answer came.
    pub fn answered(&mut self, is_failure: bool, took: Duration) {
        let counter = if is_failure { &mut self.failed } else { &mut self.well };
        *counter += 1;
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = usize::try_from(u64::BITS - micros.leading_zeros()).unwrap_or(BUCKETS);
        self.took[bucket.min(BUCKETS - 1)] += 1;
    }

    /// Asks that were answered.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.well + self.failed
    }

    /// Asks that came to an end, with an answer or without.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.answers() + self.crashed + self.expired + self.unheard
    }

    /// What came after `before`, of the same counts.
    #[must_use]
    pub fn since(&self, before: &Fared) -> Fared {
        let mut took = self.took;
        took.iter_mut().zip(before.took).for_each(|(now, then)| *now = now.saturating_sub(then));
        Fared {
            well: self.well.saturating_sub(before.well),
            failed: self.failed.saturating_sub(before.failed),
            crashed: self.crashed.saturating_sub(before.crashed),
            expired: self.expired.saturating_sub(before.expired),
            unheard: self.unheard.saturating_sub(before.unheard),
            took,
            oldest: self.oldest,
        }
    }

    /// The time within which so many of a hundred answers came, rounded up to a power of two; `None`: there are none.
    #[must_use]
    pub fn within(&self, percent: u64) -> Option<Duration> {
        let all: u64 = self.took.iter().sum();
        let wanted = (all * percent).div_ceil(100).max(1);
        let mut sum = 0;
        for (bucket, count) in self.took.iter().enumerate() {
            sum += count;
            if sum >= wanted {
                return Some(Duration::from_micros(1 << bucket));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_known_to_a_factor_of_two_and_counts_can_be_subtracted() {
        let mut fared = Fared::default();
        assert_eq!(fared.within(50), None);
        for micros in [0, 1, 3, 1000] {
            fared.answered(false, Duration::from_micros(micros));
        }
        let times = |f: &Fared| [25, 50, 75, 90, 100].map(|p| f.within(p).map(|t| t.as_micros()));
        assert_eq!(times(&fared), [Some(1), Some(2), Some(4), Some(1024), Some(1024)]);
        let before = fared.clone();
        fared.answered(true, Duration::from_secs(9999));
        fared.crashed += 1;
        let since = fared.since(&before);
        assert_eq!((since.well, since.failed, since.crashed, since.answers(), since.ended()), (0, 1, 1, 1, 2));
        assert_eq!(since.within(50), Some(Duration::from_micros(1 << 31)));
        assert_eq!((fared.answers(), fared.ended()), (5, 6));
    }
}
