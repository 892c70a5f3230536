//! Rates from two samples of a counter.

use std::collections::BTreeMap;

use model::Timestamp;

const SECOND: i64 = 1_000_000_000;
/// Two samples closer than this say nothing.
const SHORTEST: i64 = SECOND;
/// The older sample is replaced when it is older than this: a rate is about the last 10 s, or the time between two asks.
const WINDOW: i64 = 10 * SECOND;
/// Who was not asked about for so long is forgotten (interfaces 6.2).
const KEPT: i64 = 600 * SECOND;

/// Samples of counters, by cgroup.
#[derive(Clone, Debug, Default)]
pub struct Samples(BTreeMap<String, Sample>);

#[derive(Clone, Copy, Debug)]
struct Sample {
    base_at: Timestamp,
    base: u64,
    rate: Option<u64>,
    seen: Timestamp,
}

impl Samples {
    /// Takes a sample of nanoseconds used, and answers with nanoseconds per second since the sample before. Absent while
    /// there is only one, or when the counter went back (another cgroup of the same name).
    pub fn rate(&mut self, key: &str, at: Timestamp, total: u64) -> Option<u64> {
        let first = Sample { base_at: at, base: total, rate: None, seen: at };
        let Some(known) = self.0.get_mut(key) else {
            self.0.insert(key.to_owned(), first);
            return None;
        };
        let span = at.nanos_since(known.base_at);
        if total < known.base || span < 0 {
            *known = first;
            return None;
        }
        known.seen = at;
        if span >= SHORTEST {
            let per_second =
                u128::from(total - known.base) * SECOND.unsigned_abs() as u128 / u128::from(span.unsigned_abs());
            known.rate = u64::try_from(per_second).ok();
        }
        if span >= WINDOW {
            (known.base_at, known.base) = (at, total);
        }
        known.rate
    }

    /// Forgets who was not asked about for 10 minutes.
    pub fn forget(&mut self, now: Timestamp) {
        self.0.retain(|_, sample| now.nanos_since(sample.seen) < KEPT);
    }

    /// How many are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
