//! One request from start to end.

use std::sync::Arc;
use std::time::Duration;

use actor::{ActorRef, AskError, Class, Clock, Effects};
use contract::Crew;
use contract::image::{EnsureImage, EnsuredImage, ImageFailure};
use cri_api::v1::{AuthConfig, Image, ImageSpec, ImageStatusRequest, PullImageRequest, PullImageResponse};
use image_pull::{Look, PullPolicy, Verdict, classify, look, reference, text};
use model::event::{EventObject, EventType, NodeEvent};
use model::{Timestamp, pod};
use pod_plan::backoff::{go_duration, image_key};
use ports::runtime::{RuntimeCode, RuntimeError};
use pull_credentials::records::access_by;
use pull_credentials::verification::{Decision, Policy, decide};
use pull_credentials::{Credential, CredentialError};
use tokio::sync::{OnceCell, watch};

use crate::actor::{Config, Deps, ImageManager, NoteImage, NoteOutcome, PullKey, Start, StartPull, TakeToken};
use crate::credentials::Lookup;
use crate::records::Records;

/// The actor answers these at once; longer means that it is being rebuilt.
const OWN_DEADLINE: Duration = Duration::from_secs(60);

/// What a request works with.
pub(crate) struct Tools {
    pub crew: Crew<contract::ImageManager>,
    pub deps: Arc<Deps>,
    pub config: Arc<Config>,
    pub manager: ActorRef<ImageManager>,
    pub clock: Clock,
    pub effects: Effects,
}

/// How a pull ended, for all who waited for it: the image, or the runtime's text.
pub(crate) type Outcome = Result<Pulled, String>;

/// An image that a pull brought.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pulled {
    image: EnsuredImage,
    size_bytes: u64,
    took: Duration,
}

struct Request {
    tools: Tools,
    ask: EnsureImage,
    spec: ImageSpec,
    /// The image without tag, as credentials and records know it.
    repository: String,
    credentials: OnceCell<Vec<Credential>>,
}

/// Makes sure that the image is there.
pub(crate) async fn run(tools: Tools, ask: EnsureImage) -> Result<EnsuredImage, ImageFailure> {
    let parsed = reference::with_default_tag(&ask.image).and_then(|n| Ok((reference::repository(&n)?, n)));
    let (repository, name) = match parsed {
        Ok(names) => names,
        Err(e) => {
            let message = text::bad_name(&ask.image, &e);
            emit(&tools, &ask, EventType::Warning, text::INSPECT_FAILED, message.clone());
            return Err(failure(text::INVALID_IMAGE_NAME, message));
        }
    };
    let spec = ImageSpec {
        image: name,
        annotations: ask.pod.metadata.annotations.clone().unwrap_or_default(),
        runtime_handler: ask.runtime_handler.clone(),
        ..ImageSpec::default()
    };
    Request { tools, ask, spec, repository, credentials: OnceCell::new() }.run().await
}

fn failure(reason: &str, message: String) -> ImageFailure {
    ImageFailure { reason: reason.to_owned(), message }
}

fn emit(tools: &Tools, ask: &EnsureImage, kind: EventType, reason: &'static str, message: String) {
    let object = EventObject::Pod {
        namespace: pod::namespace(&ask.pod).to_owned(),
        name: pod::name(&ask.pod).to_owned(),
        uid: pod::uid(&ask.pod),
        field_path: ask.field_path.clone(),
    };
    tools.crew.emit(NodeEvent { kind, reason: reason.into(), message, object });
}

impl Request {
    async fn run(self) -> Result<EnsuredImage, ImageFailure> {
        let policy = PullPolicy::parse(&self.ask.pull_policy);
        if look(policy) == Look::Inspect {
            self.tools.effects.hit("inspect").await;
            let found = self.inspect().await.map_err(|e| {
                self.count("unknown", "unknown");
                self.inspect_failed(&e)
            })?;
            let present = if found.is_some() { "true" } else { "false" };
            let usable = match &found {
                Some(image) => self.may_use(&image.id).await.inspect_err(|_| self.count(present, "unknown"))?,
                None => false,
            };
            let verdict = Verdict::of(policy, usable);
            self.count(present, if matches!(verdict, Verdict::Present) { "false" } else { "true" });
            match verdict {
                Verdict::Present => {
                    let verified = self.tools.config.verification.is_some();
                    let text = if verified { text::present } else { text::present_unverified };
                    self.tell(EventType::Normal, text::PULLED, text(&self.ask.image));
                    let image = found.map(|i| of_image(&i)).unwrap_or_default();
                    self.note_image(&image.image_ref, false);
                    return Ok(image);
                }
                // Also what is here for others only: that it is must not show.
                Verdict::Refused => {
                    let message = text::never_pull(&self.ask.image);
                    self.tell(EventType::Warning, text::ERR_IMAGE_NEVER_PULL, message.clone());
                    return Err(failure(text::ERR_IMAGE_NEVER_PULL, message));
                }
                Verdict::Pull => {}
            }
        } else {
            self.count("unknown", "true");
        }
        self.pull_or_wait().await
    }

    fn count(&self, present: &str, pull: &str) {
        let policy = self.ask.pull_policy.to_ascii_lowercase();
        metrics::images::ENSURE_REQUESTS.with_label_values(&[&*policy, present, pull]).inc();
    }

    /// What to try at the registry; looked up once, and only when it matters.
    async fn credentials(&self) -> Result<&[Credential], ImageFailure> {
        let Tools { crew, deps, config, clock, effects, .. } = &self.tools;
        let find = || Lookup { crew, deps, config, clock, effects }.find_for(self);
        let found = self.credentials.get_or_try_init(find).await;
        found.map(Vec::as_slice).map_err(|e| failure(text::ERR_IMAGE_PULL, e.to_string()))
    }

    /// Works on the pull records, in turn with others.
    async fn records<R: Send + 'static>(&self, work: impl FnOnce(&mut Records<'_>) -> R + Send + 'static) -> R {
        let (deps, config) = (self.tools.deps.clone(), self.tools.config.clone());
        self.tools
            .effects
            .blocking(Class::HostFiles, move || work(&mut deps.vault.books().open(&*deps.fs, &config.root_dir)))
            .await
    }

    /// Whether this pod may use the image that is here.
    async fn may_use(&self, image_ref: &str) -> Result<bool, ImageFailure> {
        let Some(policy) = &self.tools.config.verification else { return Ok(true) };
        if *policy == Policy::NeverVerify {
            return Ok(true);
        }
        let (image, id) = (self.ask.image.clone(), image_ref.to_owned());
        let trace = self.records(move |r| r.trace(&image, &id)).await;
        let repository = &self.repository;
        // Most images are open to all; then no secret is looked at and no plugin asked.
        if decide(policy, repository, &trace, &[]) == Decision::Use(None) {
            checked("credentialPolicyAllowed");
            return Ok(true);
        }
        let credentials = self.credentials().await.inspect_err(|_| checked("error"))?;
        match decide(policy, repository, &trace, credentials) {
            Decision::Pull => {
                checked("mustAuthenticate");
                Ok(false)
            }
            Decision::Use(None) => {
                checked("credentialRecordFound");
                Ok(true)
            }
            Decision::Use(Some(access)) => {
                checked("credentialRecordFound");
                let (id, repository, now) = (image_ref.to_owned(), repository.clone(), self.now());
                if let Err(e) = self.records(move |r| r.note(&id, &repository, Some(&access), now)).await {
                    tracing::warn!(error = %actor::chain(&e), "a pull record cannot be written");
                }
                Ok(true)
            }
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.tools.clock.unix_nanos())
    }

    /// Keeps the image from being removed before its container shows.
    fn note_image(&self, image_ref: &str, pulled: bool) {
        let note = NoteImage { pod: pod::uid(&self.ask.pod), image_ref: image_ref.to_owned(), pulled };
        // A manager that is being rebuilt keeps all young images anyway.
        let _noted: Result<(), actor::TellError> = self.tools.manager.tell(note);
    }

    fn tell(&self, kind: EventType, reason: &'static str, message: String) {
        emit(&self.tools, &self.ask, kind, reason, message);
    }

    async fn inspect(&self) -> Result<Option<Image>, RuntimeError> {
        let request = ImageStatusRequest { image: Some(self.spec.clone()), verbose: false };
        Ok(self.tools.deps.images.image_status(request).await?.image)
    }

    fn inspect_failed(&self, e: &RuntimeError) -> ImageFailure {
        let message = text::inspect_failed(&self.ask.image, &e.go_text());
        self.tell(EventType::Warning, text::INSPECT_FAILED, message.clone());
        failure(text::IMAGE_INSPECT_ERROR, message)
    }

    fn backoff_key(&self) -> String {
        image_key(&pod::uid(&self.ask.pod), &self.ask.image)
    }

    async fn pull_or_wait(&self) -> Result<EnsuredImage, ImageFailure> {
        let began = self.tools.clock.now();
        let mut announced = false;
        let credentials = self.credentials().await?;
        let outcome = loop {
            let pull = PullKey {
                image: self.spec.image.clone(),
                runtime_handler: self.spec.runtime_handler.clone(),
                credentials: credentials.iter().map(|c| format!("{:?} {}", c.source, c.hash())).collect(),
            };
            let start = StartPull { backoff_key: self.backoff_key(), pull };
            match self.tools.manager.ask(start, OWN_DEADLINE).await? {
                Start::Wait(previous) => {
                    self.tell(EventType::Normal, text::BACK_OFF, text::back_off(&self.ask.image));
                    let message = text::back_off_waiting(&self.ask.image, previous.as_deref());
                    return Err(failure(text::IMAGE_PULL_BACK_OFF, message));
                }
                Start::Lead(tx) => {
                    self.announce(&mut announced);
                    let outcome = self.lead(credentials).await;
                    tx.send_replace(Some(outcome.clone()));
                    break outcome;
                }
                Start::Follow(rx) => {
                    self.announce(&mut announced);
                    // Without an outcome the leader died, and somebody else leads.
                    if let Some(outcome) = follow(rx).await {
                        break outcome;
                    }
                }
            }
        };
        let waited = self.tools.clock.now().saturating_duration_since(began);
        self.finish(outcome, waited).await
    }

    fn announce(&self, announced: &mut bool) {
        if !std::mem::replace(announced, true) {
            self.tell(EventType::Normal, text::PULLING, text::pulling(&self.ask.image));
        }
    }

    async fn lead(&self, credentials: &[Credential]) -> Outcome {
        let _slot = self.tools.deps.slots.take(&self.spec.image).await;
        let allowed = self.tools.manager.ask(TakeToken, OWN_DEADLINE).await;
        // An actor that is being rebuilt has a full bucket.
        if !allowed.unwrap_or(true) {
            return Err(text::QPS_EXCEEDED.to_owned());
        }
        let recorded = self.tools.config.verification.is_some();
        if recorded {
            let image = self.ask.image.clone();
            let begun = self.records(move |r| r.begin(&image)).await;
            begun.map_err(|e| format!("failed to record image pull intent: {}", actor::chain(&e)))?;
        }
        self.tools.effects.hit("pull").await;
        let began = self.tools.clock.now();
        let pulled = self.try_each(credentials).await;
        let took = self.tools.clock.now().saturating_duration_since(began);
        if recorded {
            let (image, repository, now) = (self.ask.image.clone(), self.repository.clone(), self.now());
            let end = pulled.as_ref().ok().map(|(a, used)| (a.image_ref.clone(), access_by(used.as_ref())));
            self.records(move |r| match end {
                Some((image_ref, access)) => r.succeeded(&image, &image_ref, &repository, &access, now),
                None => r.failed(&image),
            })
            .await;
        }
        let (answer, _) = pulled?;
        self.tools.effects.hit("pulled").await;
        // Size and user are in the status only. A pull is not undone by a status that fails.
        let status = self.inspect().await.ok().flatten();
        let described = status.as_ref().map(of_image).unwrap_or_default();
        let size_bytes = status.map_or(0, |s| s.size);
        let bucket = metrics::images::size_bucket(size_bytes);
        metrics::images::PULL_DURATION.with_label_values(&[bucket]).observe(took.as_secs_f64());
        Ok(Pulled { image: EnsuredImage { image_ref: answer.image_ref, ..described }, size_bytes, took })
    }

    /// One pull per credential until one works; without any, one that shows none.
    async fn try_each(&self, credentials: &[Credential]) -> Result<(PullImageResponse, Option<Credential>), String> {
        if credentials.is_empty() {
            return self.pull(None).await.map(|answer| (answer, None)).map_err(|e| pull_text(&e));
        }
        let mut errors: Vec<String> = Vec::new();
        for credential in credentials {
            match self.pull(Some(credential)).await {
                Ok(answer) => return Ok((answer, Some(credential.clone()))),
                Err(e) => errors.push(pull_text(&e)),
            }
        }
        Err(together(errors))
    }

    async fn pull(&self, credential: Option<&Credential>) -> Result<PullImageResponse, RuntimeError> {
        let request = PullImageRequest {
            image: Some(self.spec.clone()),
            auth: credential.map(auth_of),
            sandbox_config: Some((*self.ask.sandbox_config).clone()),
        };
        self.tools.deps.images.pull_image(request).await
    }

    async fn finish(&self, outcome: Outcome, waited: Duration) -> Result<EnsuredImage, ImageFailure> {
        let failed = outcome.as_ref().err().map(|error| classify(&self.ask.image, error));
        let note = NoteOutcome {
            backoff_key: self.backoff_key(),
            failure: failed.as_ref().map(|f| format!("{}: {}", f.reason, f.message)),
        };
        // Without a note the back-off starts later by one failure: no reason to fail the request.
        let _noted: Result<(), AskError> = self.tools.manager.ask(note, OWN_DEADLINE).await;
        match (outcome, failed) {
            (Err(error), Some(f)) => {
                self.tell(EventType::Warning, text::FAILED, text::pull_failed(&self.ask.image, &error));
                Err(failure(f.reason, f.message))
            }
            (Ok(p), _) => {
                let (took, all) = (go_duration(p.took), go_duration(waited));
                let message = text::pulled(&self.ask.image, &took, &all, p.size_bytes);
                self.tell(EventType::Normal, text::PULLED, message);
                self.note_image(&p.image.image_ref, true);
                Ok(p.image)
            }
            (Err(error), None) => Err(failure(text::ERR_IMAGE_PULL, error)),
        }
    }
}

/// Whether an image that is here may be used, decided.
fn checked(result: &str) {
    metrics::images::MUST_PULL_CHECKS.with_label_values(&[result]).inc();
}

async fn follow(mut rx: watch::Receiver<Option<Outcome>>) -> Option<Outcome> {
    // A sender that went away after its outcome leaves it behind, so the value is looked at in either case.
    let _leader_gone = rx.wait_for(Option::is_some).await.is_err();
    rx.borrow().clone()
}

impl Lookup<'_> {
    async fn find_for(self, request: &Request) -> Result<Vec<Credential>, CredentialError> {
        self.all(&request.repository, &request.ask.pod, &request.ask.pull_secrets).await
    }
}

fn auth_of(c: &Credential) -> AuthConfig {
    let auth = &c.auth;
    // A kubelet never sends an identity token; one that has nothing else gets to try it.
    let identity_token = if auth.username.is_empty() { auth.identity_token.clone() } else { String::new() };
    let (username, password) = (auth.username.clone(), auth.password.clone());
    AuthConfig { username, password, identity_token, ..AuthConfig::default() }
}

/// Failures of several credentials in one text: each once, in brackets when there is more than one.
fn together(errors: Vec<String>) -> String {
    let mut each: Vec<String> = Vec::new();
    for e in errors {
        if !each.contains(&e) {
            each.push(e);
        }
    }
    if each.len() == 1 { each.swap_remove(0) } else { format!("[{}]", each.join(", ")) }
}

fn of_image(i: &Image) -> EnsuredImage {
    let uid = i.uid.as_ref().map(|u| u.value);
    let username = if uid.is_some() { String::new() } else { i.username.clone() };
    EnsuredImage { image_ref: i.id.clone(), uid, username }
}

/// A kubelet drops the code where it says nothing.
fn pull_text(e: &RuntimeError) -> String {
    if e.code == RuntimeCode::Unknown { e.message.clone() } else { e.go_text() }
}
