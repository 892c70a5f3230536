//! Which pulls may start, which can be joined, and what a request asks its actor about them.

use std::collections::BTreeMap;
use std::time::Duration;

use actor::watch;
use actor::{Route, message};
use contract::image::EnsuredImage;
use image_pull::Limiter;
use model::{PodUid, Timestamp};
use pod_plan::ImageBackoff;

/// How a pull ended, for all who waited for it: the image, or the runtime's text.
pub(crate) type Outcome = Result<Pulled, String>;

/// An image that a pull brought.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pulled {
    pub image: EnsuredImage,
    pub size_bytes: u64,
    pub took: Duration,
}

/// Pulls with the same key bring the same image.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PullKey {
    pub image: String,
    pub runtime_handler: String,
    /// Hashes of what is tried, in order: nobody gets an image by what somebody else's secret opened.
    pub credentials: Vec<String>,
}

/// May this pod pull now, and is somebody at it already?
pub(crate) struct StartPull {
    pub backoff_key: String,
    pub pull: PullKey,
}

/// Answer of [`StartPull`].
pub(crate) enum Start {
    /// Not yet; the failure before.
    Wait(Option<String>),
    /// Pull, and tell the others.
    Lead(watch::Sender<Option<Outcome>>),
    /// Somebody pulls: wait for the outcome.
    Follow(watch::Receiver<Option<Outcome>>),
}

/// One pull goes to the registry: within the rate?
pub(crate) struct TryAcceptPull;

/// A pull for this key ended.
pub(crate) struct NoteOutcome {
    pub backoff_key: String,
    /// `reason: text` of a failure.
    pub failure: Option<String>,
}

/// A pod has its image.
pub(crate) struct NoteImage {
    pub pod: PodUid,
    pub image_ref: String,
    pub pulled: bool,
}

message!(NoteImage => ());
message!(StartPull => Start);
message!(TryAcceptPull => bool);
message!(NoteOutcome => ());

/// What a request may say to its actor.
pub(crate) trait Manager:
    Route<StartPull> + Route<TryAcceptPull> + Route<NoteOutcome> + Route<NoteImage>
{
}

impl<R: Route<StartPull> + Route<TryAcceptPull> + Route<NoteOutcome> + Route<NoteImage>> Manager for R {}

/// Back-off, rate, and pulls under way.
#[derive(Debug)]
pub(crate) struct Pulls {
    backoff: ImageBackoff,
    /// Failure before, by back-off key: `ErrImagePull: text`.
    previous: BTreeMap<String, String>,
    limiter: Limiter,
    /// Pulls that others may join.
    running: BTreeMap<PullKey, watch::Receiver<Option<Outcome>>>,
}

impl Pulls {
    pub(crate) fn new(limiter: Limiter) -> Self {
        Self { backoff: ImageBackoff::default(), previous: BTreeMap::new(), limiter, running: BTreeMap::new() }
    }

    pub(crate) fn start(&mut self, StartPull { backoff_key, pull }: StartPull, now: Timestamp) -> Start {
        if self.backoff.check(&backoff_key, now).is_some() {
            return Start::Wait(self.previous.get(&backoff_key).cloned());
        }
        // A leader that is done or dead has let go of its end.
        if let Some(rx) = self.running.get(&pull).filter(|rx| rx.has_changed().is_ok()) {
            return Start::Follow(rx.clone());
        }
        let (tx, rx) = watch::channel(None);
        self.running.insert(pull, rx);
        Start::Lead(tx)
    }

    /// Whether one more pull is within the rate.
    pub(crate) fn try_accept(&mut self, now: Timestamp) -> bool {
        self.limiter.try_accept(now.0)
    }

    /// Notes a failure for the back-off, and forgets what is over.
    pub(crate) fn ended(&mut self, NoteOutcome { backoff_key, failure }: NoteOutcome, now: Timestamp) {
        if let Some(text) = failure {
            self.backoff.next(&backoff_key, now);
            self.previous.insert(backoff_key, text);
        }
        self.backoff.gc(now);
        let entries = self.backoff.entries();
        self.previous.retain(|key, _| entries.contains_key(key));
        self.running.retain(|_, rx| rx.has_changed().is_ok());
    }
}
