//! Pauses between tries, and how often strangers may make a node ask the API server.

use std::collections::BTreeMap;
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
pub struct TokenBucket {
    per_second: f64,
    most: f64,
    left: f64,
    at: Duration,
}

impl TokenBucket {
    /// A full bucket of `most`, refilled at a rate.
    #[must_use]
    pub fn new(per_second: u32, most: u32) -> Self {
        Self { per_second: per_second.into(), most: most.into(), left: most.into(), at: Duration::ZERO }
    }

    /// Takes one permission, if there is one.
    pub fn try_acquire(&mut self, now: Duration) -> bool {
        let some = self.has(now);
        if some {
            self.left -= 1.0;
        }
        some
    }

    fn has(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = now.max(self.at);
        self.left = (self.left + passed * self.per_second).min(self.most);
        self.left >= 1.0
    }

    fn is_full(&mut self, now: Duration) -> bool {
        self.has(now) && self.left >= self.most
    }
}

/// Origins that are kept apart at a time.
const ORIGINS: usize = 1024;

/// A bucket for all, and a smaller one for each origin: one flood does not take the permissions of everybody else.
#[derive(Clone, Debug)]
pub struct TokenBuckets<O> {
    all: TokenBucket,
    new: TokenBucket,
    each: BTreeMap<O, TokenBucket>,
}

impl<O: Ord> TokenBuckets<O> {
    /// `all` for everybody together, `each` for every origin; both as for [`TokenBucket::new`].
    #[must_use]
    pub fn new(all: (u32, u32), each: (u32, u32)) -> Self {
        Self { all: TokenBucket::new(all.0, all.1), new: TokenBucket::new(each.0, each.1), each: BTreeMap::new() }
    }

    /// Takes one permission for an origin, if there is one. Who has none left takes none of the others'.
    pub fn try_acquire(&mut self, origin: O, now: Duration) -> bool {
        if self.each.len() >= ORIGINS && !self.each.contains_key(&origin) {
            // An origin whose bucket is full again is as good as a new one.
            self.each.retain(|_, pace| !pace.is_full(now));
            if self.each.len() >= ORIGINS {
                return false;
            }
        }
        let own = self.each.entry(origin).or_insert(TokenBucket { at: now, ..self.new });
        own.has(now) && self.all.try_acquire(now) && own.try_acquire(now)
    }

    /// Origins that are remembered.
    #[must_use]
    pub fn origins(&self) -> usize {
        self.each.len()
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
        let mut pace = TokenBucket::new(2, 3);
        let at = Duration::from_millis;
        assert_eq!([0; 4].map(|_| pace.try_acquire(at(0))), [true, true, true, false]);
        assert!(!pace.try_acquire(at(400)));
        assert!(pace.try_acquire(at(500)));
        assert!(!pace.try_acquire(at(0)), "time does not go back");
        assert_eq!([0; 4].map(|_| pace.try_acquire(at(60_000))), [true, true, true, false]);
    }

    #[test]
    fn a_flood_from_one_origin_leaves_permissions_for_others() {
        let mut paces = TokenBuckets::new((20, 10), (2, 3));
        let at = Duration::from_millis;
        let taken = (0..1000).filter(|_| paces.try_acquire("flood", at(0))).count();
        assert_eq!(taken, 3);
        assert_eq!([0; 4].map(|_| paces.try_acquire("other", at(0))), [true, true, true, false]);
        assert!(paces.try_acquire("flood", at(500)) && !paces.try_acquire("flood", at(500)));
    }

    #[test]
    fn origins_are_bounded_and_forgotten_when_they_are_quiet() {
        let mut paces = TokenBuckets::new((1_000_000, 1_000_000), (1, 2));
        let at = Duration::from_secs;
        let taken = (0..5000).filter(|origin| paces.try_acquire(*origin, at(0))).count();
        assert_eq!((taken, paces.origins()), (ORIGINS, ORIGINS));
        assert!(paces.try_acquire(9999, at(2)), "all buckets are full again");
        assert_eq!(paces.origins(), 1);
    }
}
