//! When each of many probes is due: one ordered set instead of one timer per probe.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::Timestamp;
use model::fnv::fnv1a_64;

/// How long it is until a probe's place in its period. The place follows from what the probe is called and from the time of the day, so
/// that everybody who has charge of it, in whichever process, probes at the same moments: whoever takes over goes on in step, and a
/// full node does not probe everything in the same second.
#[must_use]
pub fn until_place(called: &str, wall: Timestamp, period: Duration) -> Duration {
    let period = period.as_nanos().max(1);
    let place = (u128::from(fnv1a_64(called.as_bytes())) * period) >> 64;
    let passed = u128::try_from(wall.0).unwrap_or(0) % period;
    let nanos = (place + period - passed) % period;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// When a probe ticks first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// Now.
    AtOnce,
    /// At its place in the period.
    AtPlace,
    /// At its place or half a period before, whichever comes first, and from then on at its place: whoever had it before may have probed
    /// at another place, and no probe is to be late by a period.
    GoesOn,
}

/// When a probe ticks first: at its place while the daemon is younger than a period (pod-lifecycle 8.1: spread over it), soon where it
/// goes on with what was fine (`goes_on`), else at once.
#[must_use]
pub fn first(daemon_age: Duration, period: Duration, goes_on: bool) -> First {
    match (daemon_age < period, goes_on) {
        (_, true) => First::GoesOn,
        (true, false) => First::AtPlace,
        (false, false) => First::AtOnce,
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    due: Duration,
    /// When the next tick after that is, where that is not a period later.
    then: Option<Duration>,
    period: Duration,
    running: bool,
    missed: bool,
}

/// Due times by key. Times are monotonic, counted from any fixed moment.
///
/// Each key ticks once per period from its first due time on. A tick that comes while its probe still runs is made up for
/// once, when the probe ends; further ones are lost. Ticks that nobody collected are not replayed.
#[derive(Clone, Debug)]
pub struct Schedule<K> {
    entries: BTreeMap<K, Entry>,
    queue: BTreeSet<(Duration, K)>,
}

impl<K: Ord + Clone> Default for Schedule<K> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), queue: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Schedule<K> {
    /// Adds a probe, or begins it anew. Its place in the period is `until_place` from now on (see [`until_place`]).
    pub fn insert(&mut self, key: K, now: Duration, first: First, until_place: Duration, period: Duration) {
        self.remove(&key);
        let period = period.max(Duration::from_millis(1));
        let (due, then) = match (first, until_place.checked_sub(period / 2)) {
            (First::AtOnce, _) => (now, None),
            (First::GoesOn, Some(until_half)) => (now + until_half, Some(now + until_place)),
            (First::AtPlace | First::GoesOn, _) => (now + until_place, None),
        };
        self.queue.insert((due, key.clone()));
        self.entries.insert(key, Entry { due, then, period, running: false, missed: false });
    }

    /// Takes a probe away; an outcome that still comes for it is to be dropped.
    pub fn remove(&mut self, key: &K) {
        if let Some(e) = self.entries.remove(key) {
            self.queue.remove(&(e.due, key.clone()));
        }
    }

    /// Whether the probe is known.
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.entries.contains_key(key)
    }

    /// Number of probes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// When to look again.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// The probes whose tick has come, earliest first; those that still run are noted and left out.
    pub fn pop_due(&mut self, now: Duration) -> Vec<K> {
        let mut out = Vec::new();
        while let Some((due, key)) = self.queue.first().filter(|(due, _)| *due <= now).cloned() {
            self.queue.remove(&(due, key.clone()));
            let Some(e) = self.entries.get_mut(&key) else { continue };
            e.due = e.then.take().unwrap_or(due.saturating_add(e.period));
            if let Some(late) = now.checked_sub(e.due) {
                let missed = u32::try_from(late.as_nanos() / e.period.as_nanos()).unwrap_or(u32::MAX);
                e.due = e.due.saturating_add(e.period.saturating_mul(missed.saturating_add(1)));
            }
            self.queue.insert((e.due, key.clone()));
            if e.running {
                e.missed = true;
            } else {
                out.push(key);
            }
        }
        out
    }

    /// Makes a probe due now and counts its period from now. Nothing happens while it runs.
    pub fn trigger(&mut self, key: &K, now: Duration) {
        let Some(e) = self.entries.get_mut(key).filter(|e| !e.running) else { return };
        self.queue.remove(&(e.due, key.clone()));
        (e.due, e.then) = (now, None);
        self.queue.insert((now, key.clone()));
    }

    /// Brings the next tick forward to `at`, unless it comes earlier anyway; the period counts from there.
    pub fn hasten(&mut self, key: &K, at: Duration) {
        let Some(e) = self.entries.get_mut(key).filter(|e| e.due > at) else { return };
        self.queue.remove(&(e.due, key.clone()));
        (e.due, e.then) = (at, None);
        self.queue.insert((at, key.clone()));
    }

    /// Notes that the probe runs: its ticks wait.
    pub fn begin(&mut self, key: &K) {
        if let Some(e) = self.entries.get_mut(key) {
            e.running = true;
        }
    }

    /// Notes that the probe has ended; `true`: it missed a tick meanwhile and is to tick at once.
    pub fn end(&mut self, key: &K) -> bool {
        self.entries.get_mut(key).is_some_and(|e| {
            e.running = false;
            std::mem::take(&mut e.missed)
        })
    }
}
