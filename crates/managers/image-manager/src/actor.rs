//! The actor: everything about pulls that needs memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Class, Ctx, Detached, Handler, MessageResult, message, supervised};
use contract::Crew;
use contract::image::{EnsureImage, EnsuredImage, ImageFailure};
use contract::runtime::Observed;
use cri_api::v1::ListImagesRequest;
use image_pull::Limiter;
use image_pull::gc::{Memory, Thresholds};
use model::event::{EventObject, EventType, NodeEvent};
use model::{PodUid, Timestamp};
use pod_plan::ImageBackoff;
use ports::credential::CredentialPlugin;
use ports::host::HostFs;
use ports::runtime::ImageService;
use pull_credentials::provider_config::Provider;
use pull_credentials::verification::Policy;
use tokio::sync::watch;

use crate::ensure::{self, Outcome};
use crate::gc::{Pass, Passed};
use crate::slots::Slots;
use crate::vault::Vault;

/// How often room is looked for without an occasion.
const GC_PERIOD: Duration = Duration::from_secs(300);
/// How long after a pull: one look for many pulls.
const GC_AFTER_PULL: Duration = Duration::from_secs(30);
/// How long an image that was asked for is kept for a pod that the runtime does not show yet.
const ASKED_FOR_FRESH: Duration = Duration::from_secs(600);

/// Settings.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `registryPullQPS`; not positive: no limit.
    pub registry_qps: i32,
    /// `registryBurst`.
    pub registry_burst: i32,
    /// Root directory of the node: pull records, first place of credential files.
    pub root_dir: PathBuf,
    /// Working directory of this process, second place of credential files.
    pub working_dir: PathBuf,
    /// Home directory, third place of credential files.
    pub home: Option<PathBuf>,
    /// Credential provider plugins, in the order of their configuration.
    pub providers: Vec<Provider>,
    /// `imagePullCredentialsVerificationPolicy`; `None`: the gate `KubeletEnsureSecretPulledImages` is off.
    pub verification: Option<Policy>,
    /// When images are removed.
    pub gc: Thresholds,
}

/// What ImageManager works with.
#[derive(Clone)]
pub struct Deps {
    /// Where images are.
    pub images: Arc<dyn ImageService>,
    /// Pull slots, made once for the life of the node.
    pub slots: Slots,
    /// Files: pull records, credentials of the node.
    pub fs: Arc<dyn HostFs>,
    /// Runs plugins.
    pub plugin: Arc<dyn CredentialPlugin>,
    /// What is known of credentials, made once for the life of the node.
    pub vault: Vault,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("image_manager::Deps")
    }
}

/// The actor.
#[derive(Debug)]
pub struct ImageManager {
    crew: Crew<contract::ImageManager>,
    deps: Arc<Deps>,
    config: Arc<Config>,
    backoff: ImageBackoff,
    /// Failure before, by back-off key: `ErrImagePull: text`.
    previous: BTreeMap<String, String>,
    limiter: Limiter,
    /// Pulls that others may join.
    running: BTreeMap<PullKey, watch::Receiver<Option<Outcome>>>,
    /// Images that pods asked for: by reference, who, and when last.
    asked_for: BTreeMap<String, (BTreeSet<PodUid>, Timestamp)>,
    collector: Collector,
}

/// What is known for making room.
#[derive(Debug, Default)]
struct Collector {
    memory: Memory,
    watching_since: Timestamp,
    passed: bool,
    /// A pass is under way, or will be soon.
    busy: bool,
    soon: bool,
    failed: bool,
}

/// Pulls with the same key bring the same image.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PullKey {
    pub image: String,
    pub runtime_handler: String,
    /// Hashes of what is tried, in order: nobody gets an image by what somebody else's secret opened.
    pub credentials: Vec<String>,
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

/// A pod has its image.
pub(crate) struct NoteImage {
    pub pod: PodUid,
    pub image_ref: String,
    pub pulled: bool,
}

message!(NoteImage => ());
message!(StartPull => Start);
message!(TakeToken => bool);
message!(NoteOutcome => ());

impl Actor for ImageManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.collector.watching_since = now(ctx);
        self.recover(ctx);
        if !self.config.gc.is_off() {
            ctx.after(GC_AFTER_PULL, |act, ctx| act.collect(ctx));
            ctx.every(GC_PERIOD, |act, ctx| act.collect(ctx));
        }
    }
}
supervised!(ImageManager);

impl ImageManager {
    /// A fresh instance.
    #[must_use]
    pub fn new(crew: Crew<contract::ImageManager>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        // Pulls of former generations go on: this one shows them.
        deps.slots.show_on(crew.publisher());
        Self {
            crew,
            deps,
            asked_for: BTreeMap::new(),
            collector: Collector::default(),
            backoff: ImageBackoff::default(),
            previous: BTreeMap::new(),
            limiter: Limiter::new(config.registry_qps, config.registry_burst),
            running: BTreeMap::new(),
            config,
        }
    }

    /// Pulls of an earlier process whose images are here are noted as such.
    fn recover(&mut self, ctx: &mut Ctx<Self>) {
        if self.config.verification.is_none() {
            return;
        }
        let (deps, config, effects, clock) =
            (self.deps.clone(), self.config.clone(), ctx.effects(), ctx.clock().clone());
        let work = async move {
            effects.hit("recover").await;
            let (d, c) = (deps.clone(), config.clone());
            let intents =
                effects.blocking(Class::HostFiles, move || d.vault.books().open(&*d.fs, &c.root_dir).intents()).await;
            if intents.is_empty() {
                return;
            }
            let images = match deps.images.list_images(ListImagesRequest::default()).await {
                Ok(list) => list.images,
                Err(e) => {
                    tracing::warn!(error = %e.go_text(), "images of interrupted pulls cannot be listed");
                    return;
                }
            };
            let now = Timestamp(clock.unix_nanos());
            effects
                .blocking(Class::HostFiles, move || {
                    deps.vault.books().open(&*deps.fs, &config.root_dir).recover(&intents, &images, now)
                })
                .await;
        };
        ctx.run(work, |_: &mut Self, (), _| {});
    }

    /// Looks whether there is room. One look at a time.
    fn collect(&mut self, ctx: &mut Ctx<Self>) {
        self.collector.soon = false;
        if std::mem::replace(&mut self.collector.busy, true) {
            return;
        }
        let now = now(ctx);
        let shown = self.crew.board::<Observed>().snapshot();
        let fresh = i64::try_from(ASKED_FOR_FRESH.as_nanos()).unwrap_or(i64::MAX);
        self.asked_for
            .retain(|_, (pods, at)| now.nanos_since(*at) < fresh || pods.iter().any(|uid| shown.contains_key(uid)));
        let pass = Pass {
            crew: self.crew.clone(),
            deps: self.deps.clone(),
            config: self.config.clone(),
            clock: ctx.clock().clone(),
            effects: ctx.effects(),
            memory: self.collector.memory.clone(),
            first: !self.collector.passed,
            watching_since: self.collector.watching_since,
            asked_for: self.asked_for.keys().cloned().collect(),
        };
        ctx.run(pass.run(), |act: &mut Self, passed, _| act.collected(passed));
    }

    fn collected(&mut self, Passed { memory, listed, error }: Passed) {
        self.collector.busy = false;
        self.collector.passed |= listed;
        self.collector.memory = memory;
        let again = std::mem::replace(&mut self.collector.failed, error.is_some());
        let Some(error) = error else { return };
        tracing::warn!(error, "image garbage collection failed");
        // Once is no news: a node that has just started knows too little.
        if again {
            let (kind, object) = (EventType::Warning, EventObject::Node);
            self.crew.emit(NodeEvent { kind, reason: "ImageGCFailed".into(), message: error, object });
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
            crew: self.crew.clone(),
            deps: self.deps.clone(),
            config: self.config.clone(),
            manager: ctx.this(),
            clock: ctx.clock().clone(),
            effects: ctx.effects(),
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

impl Handler<NoteImage> for ImageManager {
    type Result = ();

    fn handle(&mut self, NoteImage { pod, image_ref, pulled }: NoteImage, ctx: &mut Ctx<Self>) {
        let now = now(ctx);
        let (pods, at) = self.asked_for.entry(image_ref).or_insert_with(|| (BTreeSet::new(), now));
        pods.insert(pod);
        *at = now;
        if pulled && !self.config.gc.is_off() && !std::mem::replace(&mut self.collector.soon, true) {
            ctx.after(GC_AFTER_PULL, |act, ctx| act.collect(ctx));
        }
    }
}
