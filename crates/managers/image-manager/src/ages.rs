//! How long images are here and who asked for them, by time that nobody sets. Outlives the actor: its end makes no image old.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use actor::Clock;
use image_pull::gc::Memory;
use model::{PodUid, Timestamp};
use tokio::time::Instant;

/// Passes that are further apart have missed something: whoever had the place meanwhile may have removed images and pulled them
/// again.
const UNWATCHED: Duration = Duration::from_secs(600);

/// What is known of images. Make it once, outside of the actor.
#[derive(Clone, Debug, Default)]
pub struct ImageAges(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    known: Mutex<Known>,
    begun: OnceLock<(Instant, Timestamp)>,
}

#[derive(Debug, Default)]
pub(crate) struct Known {
    pub memory: Memory,
    /// Since when passes follow each other.
    watching_since: Option<Timestamp>,
    /// When the last pass began or ended.
    pub looked: Timestamp,
    /// A pass has seen the images of the runtime.
    pub listed: bool,
    /// Images that pods asked for: by reference, who, and when last.
    pub asked_for: BTreeMap<String, (BTreeSet<PodUid>, Timestamp)>,
}

impl Known {
    /// A pass begins, one of those that come at regular times. After a time without any, every image counts as new. Answers since
    /// when there was no such time.
    pub(crate) fn look(&mut self, now: Timestamp) -> Timestamp {
        let apart = i64::try_from(UNWATCHED.as_nanos()).unwrap_or(i64::MAX);
        if self.listed && now.nanos_since(self.looked) > apart {
            self.memory.clear();
            self.watching_since = None;
        }
        self.looked = now;
        *self.watching_since.get_or_insert(now)
    }
}

impl ImageAges {
    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time for ages and delays: it goes on as it began, whatever the wall clock is set to.
    pub(crate) fn now(&self, clock: &Clock) -> Timestamp {
        let now = clock.now();
        let (begun, then) = *self.0.begun.get_or_init(|| (now, Timestamp(clock.unix_nanos())));
        then.plus(now.saturating_duration_since(begun))
    }
}
