//! Back-off of crashing containers and of failing image pulls (pod-lifecycle 6.1, 6.2), as plain data.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use model::core::{Container, Pod};
use model::fnv::fnv1a_64;
use model::go_duration::format_millis;
use model::{PodUid, Timestamp, pod};
use serde::{Deserialize, Serialize};

/// First delay unless the configured maximum is smaller.
pub const INITIAL: Duration = Duration::from_secs(10);
/// Longest delay unless configured.
pub const MAX: Duration = Duration::from_secs(300);
/// Quiet time after which an entry is forgotten, whatever the configured maximum.
pub const RESET_AFTER: Duration = Duration::from_secs(600);
/// After a start that failed and left its container created: what a kubelet waits after a step that failed. It does not grow.
pub const AFTER_FAILED_START: Duration = Duration::from_secs(10);

/// One key's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Current delay in milliseconds.
    pub delay_ms: u64,
    /// When the delay was last raised, nanoseconds since the epoch.
    pub last_update_ns: i64,
}

impl Entry {
    fn delay(self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }

    /// More than the reset window lies between the last raise and `event`.
    fn expired_at(self, event: Timestamp) -> bool {
        event.nanos_since(Timestamp(self.last_update_ns)) > nanos(RESET_AFTER)
    }
}

/// A start that must wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hold {
    /// The whole delay (not what is left of it), as messages name it.
    pub delay: Duration,
    /// When it is over.
    pub until: Timestamp,
    /// What it is about.
    pub after: After,
}

/// What a start waits after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// An end of the container, or a pull that failed.
    End,
    /// A start that failed and left the container created: there is no end to count from (pod-lifecycle 15, edge 48).
    FailedStart,
}

fn nanos(d: Duration) -> i64 {
    i64::try_from(d.as_nanos()).unwrap_or(i64::MAX)
}

fn hold_since(entry: Entry, event: Timestamp, now: Timestamp) -> Option<Hold> {
    let until = event.plus(entry.delay());
    (!entry.expired_at(event) && now < until).then_some(Hold { delay: entry.delay(), until, after: After::End })
}

/// The wait after a start that failed, of a container that was created for it at `created_at`. A clock that was set back by more than
/// the wait ends it.
pub(crate) fn after_failed_start(created_at: Timestamp, now: Timestamp) -> Option<Hold> {
    let hold =
        Hold { delay: AFTER_FAILED_START, until: created_at.plus(AFTER_FAILED_START), after: After::FailedStart };
    (now.nanos_since(created_at).abs() < nanos(AFTER_FAILED_START)).then_some(hold)
}

fn raise(
    entries: &mut BTreeMap<String, Entry>,
    key: &str,
    event: Timestamp,
    now: Timestamp,
    bounds: (Duration, Duration),
) {
    let (initial, max) = bounds;
    let delay = match entries.get(key) {
        Some(e) if !e.expired_at(event) => e.delay().saturating_mul(2).min(max),
        _ => initial,
    };
    let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    entries.insert(key.to_owned(), Entry { delay_ms, last_update_ns: now.0 });
}

/// Crash-loop back-off by container key ([`crash_key`]).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CrashBackoff {
    max_ms: u64,
    entries: BTreeMap<String, Entry>,
}

impl Default for CrashBackoff {
    fn default() -> Self {
        Self::new(MAX)
    }
}

impl CrashBackoff {
    /// `max` is `crashLoopBackOff.maxContainerRestartPeriod` (1 s to 300 s); the first delay is never longer than it.
    #[must_use]
    pub fn new(max: Duration) -> Self {
        Self { max_ms: u64::try_from(max.as_millis()).unwrap_or(u64::MAX), entries: BTreeMap::new() }
    }

    fn bounds(&self) -> (Duration, Duration) {
        let max = Duration::from_millis(self.max_ms);
        (INITIAL.min(max), max)
    }

    /// Whether a container that ended at `finished_at` must still wait.
    #[must_use]
    pub fn check(&self, key: &str, finished_at: Timestamp, now: Timestamp) -> Option<Hold> {
        hold_since(*self.entries.get(key)?, finished_at, now)
    }

    /// Notes a start that is about to happen after an end at `finished_at`: the next one waits longer.
    pub fn next(&mut self, key: &str, finished_at: Timestamp, now: Timestamp) {
        let bounds = self.bounds();
        raise(&mut self.entries, key, finished_at, now, bounds);
    }

    /// Drops entries that were not raised for the reset window.
    pub fn gc(&mut self, now: Timestamp) {
        self.entries.retain(|_, e| !e.expired_at(now));
    }

    /// Entries by key, for the journal and for people.
    #[must_use]
    pub fn entries(&self) -> &BTreeMap<String, Entry> {
        &self.entries
    }

    /// Puts an entry back that was kept in a journal.
    pub fn restore(&mut self, key: &str, entry: Entry) {
        self.entries.insert(key.to_owned(), entry);
    }
}

/// Image pull back-off by pod and image ([`image_key`]); measured from the last failure.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ImageBackoff {
    entries: BTreeMap<String, Entry>,
}

impl ImageBackoff {
    /// Whether a pull must still wait.
    #[must_use]
    pub fn check(&self, key: &str, now: Timestamp) -> Option<Hold> {
        let entry = *self.entries.get(key)?;
        let until = Timestamp(entry.last_update_ns).plus(entry.delay());
        (!entry.expired_at(now) && now < until).then_some(Hold { delay: entry.delay(), until, after: After::End })
    }

    /// Notes a failure.
    pub fn next(&mut self, key: &str, now: Timestamp) {
        raise(&mut self.entries, key, now, now, (INITIAL, MAX));
    }

    /// Drops entries without a failure in the reset window.
    pub fn gc(&mut self, now: Timestamp) {
        self.entries.retain(|_, e| !e.expired_at(now));
    }

    /// Entries by key.
    #[must_use]
    pub fn entries(&self) -> &BTreeMap<String, Entry> {
        &self.entries
    }
}

/// Key of a container in [`CrashBackoff`]: a changed image or changed resources start afresh.
#[must_use]
pub fn crash_key(pod: &Pod, container: &Container) -> String {
    let mut text = format!(
        "{}/{}/{}/{}/{}/",
        pod::name(pod),
        pod::namespace(pod),
        pod::uid(pod),
        container.name,
        container.image.as_deref().unwrap_or_default()
    );
    if let Some(r) = &container.resources {
        for (word, list) in [("limits", &r.limits), ("requests", &r.requests)] {
            for (name, quantity) in list.iter().flatten() {
                let _ = write!(text, "{word}:{name}={},", quantity.0);
            }
        }
        for claim in r.claims.iter().flatten() {
            let _ = write!(text, "claim:{}={},", claim.name, claim.request.as_deref().unwrap_or_default());
        }
    }
    format!("{:x}", fnv1a_64(text.as_bytes()))
}

/// Key of an image in [`ImageBackoff`]: shared by the containers of a pod that name the image alike.
#[must_use]
pub fn image_key(uid: &PodUid, image: &str) -> String {
    format!("{uid}_{image}")
}

/// Text of the Warning event `BackOff`.
#[must_use]
pub fn event_message(pod: &Pod, container: &str) -> String {
    format!("Back-off restarting failed container {container} in pod {}", pod::describe(pod))
}

/// Message of the waiting state `CrashLoopBackOff`.
#[must_use]
pub fn waiting_message(pod: &Pod, container: &str, delay: Duration) -> String {
    format!("back-off {} restarting failed container={container} pod={}", format_millis(delay), pod::describe(pod))
}
