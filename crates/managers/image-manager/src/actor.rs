//! The actor: everything about pulls that needs memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use actor::{Actor, Ctx, Detached, Handler, MessageResult, message, supervised};
use contract::event::EventHandle;
use contract::image::{EnsureImage, EnsuredImage, ImageFailure};
use image_pull::Limiter;
use model::Timestamp;
use pod_plan::ImageBackoff;
use ports::runtime::ImageService;
use tokio::sync::watch;

use crate::ensure::{self, Outcome};
use crate::slots::Slots;

/// Settings.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// `registryPullQPS`; not positive: no limit.
    pub registry_qps: i32,
    /// `registryBurst`.
    pub registry_burst: i32,
}

/// What ImageManager works with.
#[derive(Clone)]
pub struct Deps {
    /// Where images are.
    pub images: Arc<dyn ImageService>,
    /// Events of pods.
    pub events: EventHandle,
    /// Pull slots, made once for the life of the node.
    pub slots: Slots,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("image_manager::Deps")
    }
}

/// The actor.
#[derive(Debug)]
pub struct ImageManager {
    deps: Arc<Deps>,
    backoff: ImageBackoff,
    /// Failure before, by back-off key: `ErrImagePull: text`.
    previous: BTreeMap<String, String>,
    limiter: Limiter,
    /// Pulls that others may join.
    running: BTreeMap<PullKey, watch::Receiver<Option<Outcome>>>,
}

/// Pulls with the same key bring the same image.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PullKey {
    pub image: String,
    pub runtime_handler: String,
}

/// May this pod pull now, and is somebody at it already? Asked by [`ensure`] of its own actor.
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
pub(crate) struct TakeToken;

/// A pull for this key ended.
pub(crate) struct NoteOutcome {
    pub backoff_key: String,
    /// `reason: text` of a failure.
    pub failure: Option<String>,
}

message!(StartPull => Start);
message!(TakeToken => bool);
message!(NoteOutcome => ());

impl Actor for ImageManager {
    type Context = Ctx<Self>;
}
supervised!(ImageManager);

impl ImageManager {
    /// A fresh instance.
    #[must_use]
    pub fn new(config: &Config, deps: Arc<Deps>) -> Self {
        Self {
            deps,
            backoff: ImageBackoff::default(),
            previous: BTreeMap::new(),
            limiter: Limiter::new(config.registry_qps, config.registry_burst),
            running: BTreeMap::new(),
        }
    }

    fn forget_old(&mut self, now: Timestamp) {
        self.backoff.gc(now);
        let entries = self.backoff.entries();
        self.previous.retain(|key, _| entries.contains_key(key));
        self.running.retain(|_, rx| rx.has_changed().is_ok());
    }
}

fn now(ctx: &Ctx<ImageManager>) -> Timestamp {
    Timestamp(ctx.clock().unix_nanos())
}

impl Handler<EnsureImage> for ImageManager {
    type Result = Detached<Result<EnsuredImage, ImageFailure>>;

    // A request lives on the pool, so that neither the asker's nor this actor's end cancels its pull.
    fn handle(&mut self, request: EnsureImage, ctx: &mut Ctx<Self>) -> Self::Result {
        let tools = ensure::Tools {
            deps: self.deps.clone(),
            manager: ctx.this(),
            clock: ctx.clock().clone(),
            faults: ctx.faults(),
        };
        Detached::new(ensure::run(tools, request))
    }
}

impl Handler<StartPull> for ImageManager {
    type Result = MessageResult<StartPull>;

    fn handle(&mut self, StartPull { backoff_key, pull }: StartPull, ctx: &mut Ctx<Self>) -> Self::Result {
        if self.backoff.check(&backoff_key, now(ctx)).is_some() {
            return MessageResult(Start::Wait(self.previous.get(&backoff_key).cloned()));
        }
        // A leader that is done or dead has let go of its end.
        if let Some(rx) = self.running.get(&pull).filter(|rx| rx.has_changed().is_ok()) {
            return MessageResult(Start::Follow(rx.clone()));
        }
        let (tx, rx) = watch::channel(None);
        self.running.insert(pull, rx);
        MessageResult(Start::Lead(tx))
    }
}

impl Handler<TakeToken> for ImageManager {
    type Result = bool;

    fn handle(&mut self, _: TakeToken, ctx: &mut Ctx<Self>) -> bool {
        self.limiter.take(ctx.clock().unix_nanos())
    }
}

impl Handler<NoteOutcome> for ImageManager {
    type Result = ();

    fn handle(&mut self, NoteOutcome { backoff_key, failure }: NoteOutcome, ctx: &mut Ctx<Self>) {
        let now = now(ctx);
        if let Some(text) = failure {
            self.backoff.next(&backoff_key, now);
            self.previous.insert(backoff_key, text);
        }
        self.forget_old(now);
    }
}
