//! One request from start to end.

use std::sync::Arc;
use std::time::Duration;

use actor::{ActorRef, AskError, Clock, FaultHandle};
use contract::image::{EnsureImage, EnsuredImage, ImageFailure};
use cri_api::v1::{Image, ImageSpec, ImageStatusRequest, PullImageRequest};
use image_pull::{Look, PullPolicy, Verdict, classify, look, reference, text};
use model::event::{EventObject, EventType, NodeEvent};
use model::pod;
use pod_plan::backoff::{go_duration, image_key};
use ports::runtime::{RuntimeCode, RuntimeError};
use tokio::sync::watch;

use crate::actor::{Deps, ImageManager, NoteOutcome, PullKey, Start, StartPull, TakeToken};

/// The actor answers these at once; longer means that it is being rebuilt.
const OWN_DEADLINE: Duration = Duration::from_secs(60);

/// What a request works with.
pub(crate) struct Tools {
    pub deps: Arc<Deps>,
    pub manager: ActorRef<ImageManager>,
    pub clock: Clock,
    pub faults: FaultHandle,
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
}

/// Makes sure that the image is there.
pub(crate) async fn run(tools: Tools, ask: EnsureImage) -> Result<EnsuredImage, ImageFailure> {
    let name = match reference::with_default_tag(&ask.image) {
        Ok(name) => name,
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
    Request { tools, ask, spec }.run().await
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
    tools.deps.events.emit(NodeEvent { kind, reason, message, object });
}

impl Request {
    async fn run(self) -> Result<EnsuredImage, ImageFailure> {
        let policy = PullPolicy::parse(&self.ask.pull_policy);
        if look(policy) == Look::Inspect {
            self.tools.faults.hit("inspect").await;
            let found = self.inspect().await.map_err(|e| self.inspect_failed(&e))?;
            match Verdict::of(policy, found.is_some()) {
                Verdict::Present => {
                    self.tell(EventType::Normal, text::PULLED, text::present(&self.ask.image));
                    return Ok(found.map(|i| of_image(&i)).unwrap_or_default());
                }
                Verdict::Refused => {
                    let message = text::never_pull(&self.ask.image);
                    self.tell(EventType::Warning, text::ERR_IMAGE_NEVER_PULL, message.clone());
                    return Err(failure(text::ERR_IMAGE_NEVER_PULL, message));
                }
                Verdict::Pull => {}
            }
        }
        self.pull_or_wait().await
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
        let outcome = loop {
            let pull = PullKey { image: self.spec.image.clone(), runtime_handler: self.spec.runtime_handler.clone() };
            let start = StartPull { backoff_key: self.backoff_key(), pull };
            match self.tools.manager.ask(start, OWN_DEADLINE).await? {
                Start::Wait(previous) => {
                    self.tell(EventType::Normal, text::BACK_OFF, text::back_off(&self.ask.image));
                    let message = text::back_off_waiting(&self.ask.image, previous.as_deref());
                    return Err(failure(text::IMAGE_PULL_BACK_OFF, message));
                }
                Start::Lead(tx) => {
                    self.announce(&mut announced);
                    let outcome = self.lead().await;
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

    async fn lead(&self) -> Outcome {
        let _slot = self.tools.deps.slots.take(&self.spec.image).await;
        let allowed = self.tools.manager.ask(TakeToken, OWN_DEADLINE).await;
        // An actor that is being rebuilt has a full bucket.
        if !allowed.unwrap_or(true) {
            return Err(text::QPS_EXCEEDED.to_owned());
        }
        self.tools.faults.hit("pull").await;
        let began = self.tools.clock.now();
        let request = PullImageRequest {
            image: Some(self.spec.clone()),
            auth: None,
            sandbox_config: Some((*self.ask.sandbox_config).clone()),
        };
        let answer = self.tools.deps.images.pull_image(request).await.map_err(|e| pull_text(&e))?;
        let took = self.tools.clock.now().saturating_duration_since(began);
        self.tools.faults.hit("pulled").await;
        // Size and user are in the status only. A pull is not undone by a status that fails.
        let status = self.inspect().await.ok().flatten();
        let described = status.as_ref().map(of_image).unwrap_or_default();
        Ok(Pulled {
            image: EnsuredImage { image_ref: answer.image_ref, ..described },
            size_bytes: status.map_or(0, |s| s.size),
            took,
        })
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
                Ok(p.image)
            }
            (Err(error), None) => Err(failure(text::ERR_IMAGE_PULL, error)),
        }
    }
}

async fn follow(mut rx: watch::Receiver<Option<Outcome>>) -> Option<Outcome> {
    // A sender that went away after its outcome leaves it behind, so the value is looked at in either case.
    let _leader_gone = rx.wait_for(Option::is_some).await.is_err();
    rx.borrow().clone()
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
