//! A pull, alone or together with others who want the same.

use std::time::Duration;

use actor::AskError;
use actor::watch;
use contract::image::{EnsuredImage, ImageFailure};
use cri_api::v1::{AuthConfig, PullImageRequest, PullImageResponse};
use image_pull::{classify, text};
use model::event::EventType;
use model::go_duration::format_millis;
use model::pod;
use pod_plan::backoff::image_key;
use ports::runtime::{RuntimeCode, RuntimeError};
use pull_credentials::Credential;
use pull_credentials::records::access_by;

use crate::pulls::{NoteOutcome, Outcome, PullKey, Pulled, Start, StartPull, TryAcceptPull};
use crate::request::{Request, failure, of_image};

/// The actor answers these at once; longer means that it is being rebuilt.
const OWN_DEADLINE: Duration = Duration::from_secs(60);

fn backoff_key(request: &Request) -> String {
    image_key(&pod::uid(&request.ask.pod), &request.ask.image)
}

/// Pulls, or waits for somebody who does.
pub(crate) async fn pull(request: &Request) -> Result<EnsuredImage, ImageFailure> {
    let began = request.tools.clock.now();
    let mut announced = false;
    let credentials = request.credentials().await?;
    let outcome = loop {
        let pull = PullKey {
            image: request.spec.image.clone(),
            runtime_handler: request.spec.runtime_handler.clone(),
            credentials: credentials.iter().map(|c| format!("{:?} {}", c.source, c.hash())).collect(),
        };
        let start = StartPull { backoff_key: backoff_key(request), pull };
        match request.manager.clone().ask(start, OWN_DEADLINE).await? {
            Start::Wait(previous) => {
                request.emit(EventType::Normal, text::BACK_OFF, text::back_off(&request.ask.image));
                let message = text::back_off_waiting(&request.ask.image, previous.as_deref());
                return Err(failure(text::IMAGE_PULL_BACK_OFF, message));
            }
            Start::Lead(tx) => {
                announce(request, &mut announced);
                let outcome = lead(request, credentials).await;
                tx.send_replace(Some(outcome.clone()));
                break outcome;
            }
            Start::Follow(rx) => {
                announce(request, &mut announced);
                // Without an outcome the leader died, and somebody else leads.
                if let Some(outcome) = follow(rx).await {
                    break outcome;
                }
            }
        }
    };
    let waited = request.tools.clock.now().saturating_duration_since(began);
    finish(request, outcome, waited).await
}

fn announce(request: &Request, announced: &mut bool) {
    if !std::mem::replace(announced, true) {
        request.emit(EventType::Normal, text::PULLING, text::pulling(&request.ask.image));
    }
}

async fn lead(request: &Request, credentials: &[Credential]) -> Outcome {
    let _slot = request.tools.deps.slots.acquire(&request.spec.image).await;
    let allowed = request.manager.clone().ask(TryAcceptPull, OWN_DEADLINE).await;
    // An actor that is being rebuilt has a full bucket.
    if !allowed.unwrap_or(true) {
        return Err(text::QPS_EXCEEDED.to_owned());
    }
    let recorded = request.tools.config.verification.is_some();
    if recorded {
        let image = request.ask.image.clone();
        let begun = request.tools.records(move |r| r.begin(&image)).await;
        begun.map_err(|e| format!("failed to record image pull intent: {}", actor::chain(&e)))?;
    }
    request.tools.effects.hit("pull").await;
    let began = request.tools.clock.now();
    let pulled = try_each(request, credentials).await;
    let took = request.tools.clock.now().saturating_duration_since(began);
    if recorded {
        let (image, repository, now) = (request.ask.image.clone(), request.repository.clone(), request.tools.now());
        let end = pulled.as_ref().ok().map(|(a, used)| (a.image_ref.clone(), access_by(used.as_ref())));
        request
            .tools
            .records(move |r| match end {
                Some((image_ref, access)) => r.succeeded(&image, &image_ref, &repository, &access, now),
                None => r.failed(&image),
            })
            .await;
    }
    let (answer, _) = pulled?;
    request.tools.effects.hit("pulled").await;
    // Size and user are in the status only. A pull is not undone by a status that fails.
    let status = request.inspect().await.ok().flatten();
    let described = status.as_ref().map(of_image).unwrap_or_default();
    let size_bytes = status.map_or(0, |s| s.size);
    let bucket = metrics::images::size_bucket(size_bytes);
    metrics::images::PULL_DURATION.with_label_values(&[bucket]).observe(took.as_secs_f64());
    Ok(Pulled { image: EnsuredImage { image_ref: answer.image_ref, ..described }, size_bytes, took })
}

/// One pull per credential until one works; without any, one that shows none.
async fn try_each(
    request: &Request,
    credentials: &[Credential],
) -> Result<(PullImageResponse, Option<Credential>), String> {
    if credentials.is_empty() {
        return pull_with(request, None).await.map(|answer| (answer, None)).map_err(|e| pull_text(&e));
    }
    let mut errors: Vec<String> = Vec::new();
    for credential in credentials {
        match pull_with(request, Some(credential)).await {
            Ok(answer) => return Ok((answer, Some(credential.clone()))),
            Err(e) => errors.push(pull_text(&e)),
        }
    }
    Err(together(errors))
}

async fn pull_with(request: &Request, credential: Option<&Credential>) -> Result<PullImageResponse, RuntimeError> {
    let pull = PullImageRequest {
        image: Some(request.spec.clone()),
        auth: credential.map(auth_of),
        sandbox_config: Some((*request.ask.sandbox_config).clone()),
    };
    request.tools.deps.images.pull_image(pull).await
}

async fn finish(request: &Request, outcome: Outcome, waited: Duration) -> Result<EnsuredImage, ImageFailure> {
    let failed = outcome.as_ref().err().map(|error| classify(&request.ask.image, error));
    let note = NoteOutcome {
        backoff_key: backoff_key(request),
        failure: failed.as_ref().map(|f| format!("{}: {}", f.reason, f.message)),
    };
    // Without a note the back-off starts later by one failure: no reason to fail the request.
    let _noted: Result<(), AskError> = request.manager.clone().ask(note, OWN_DEADLINE).await;
    match (outcome, failed) {
        (Err(error), Some(f)) => {
            request.emit(EventType::Warning, text::FAILED, text::pull_failed(&request.ask.image, &error));
            Err(failure(f.reason, f.message))
        }
        (Ok(p), _) => {
            let (took, all) = (format_millis(p.took), format_millis(waited));
            let message = text::pulled(&request.ask.image, &took, &all, p.size_bytes);
            request.emit(EventType::Normal, text::PULLED, message);
            request.note_image(&p.image.image_ref, true);
            Ok(p.image)
        }
        (Err(error), None) => Err(failure(text::ERR_IMAGE_PULL, error)),
    }
}

async fn follow(mut rx: watch::Receiver<Option<Outcome>>) -> Option<Outcome> {
    // A sender that went away after its outcome leaves it behind, so the value is looked at in either case.
    let _leader_gone = rx.wait_for(Option::is_some).await.is_err();
    rx.borrow().clone()
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

/// A kubelet drops the code where it says nothing.
fn pull_text(e: &RuntimeError) -> String {
    if e.code == RuntimeCode::Unknown { e.message.clone() } else { e.go_text() }
}
