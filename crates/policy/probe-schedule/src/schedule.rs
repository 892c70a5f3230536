//! When each of many probes is due: one ordered set instead of one timer per probe.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Over how long first ticks of probes are spread that go on after a change or a crash of their manager, but over no more than half a
/// period: so shortly that no probe is late by a period. Their second ticks are spread over a period, or a full node would probe
/// everything in the same second for good.
const SPREAD_OF_RESUMED: Duration = Duration::from_secs(1);

/// Over how long the first tick of a probe is spread: over a period while the daemon is younger than that (pod-lifecycle
/// 8.1), briefly for one that goes on (`is_resumed`), not at all for others.
#[must_use]
pub fn spread(daemon_age: Duration, period: Duration, is_resumed: bool) -> Duration {
    if daemon_age < period {
        period
    } else if is_resumed {
        (period / 2).min(SPREAD_OF_RESUMED)
    } else {
        Duration::ZERO
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
    /// Adds a probe, or begins it anew. Its first tick comes within `spread` (see [`spread`]), where `jitter` in [0, 1) says; the
    /// second is earlier or later than a period after it by up to half a period, so that ticks are spread over the period.
    pub fn insert(&mut self, key: K, now: Duration, spread: Duration, period: Duration, jitter: f64) {
        self.remove(&key);
        let period = period.max(Duration::from_millis(1));
        let jitter = jitter.clamp(0.0, 1.0);
        let due = now + spread.mul_f64(jitter);
        let lag = period.saturating_sub(spread).mul_f64(jitter);
        let second = if lag < period / 2 { due + period + lag } else { due + lag };
        let then = (!spread.is_zero()).then_some(second);
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
