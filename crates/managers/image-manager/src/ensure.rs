//! One request from start to end: whether the image is here and may be used, else the pull.

use std::sync::Arc;

use contract::image::{EnsureImage, EnsuredImage, ImageFailure};
use image_pull::{PullPolicy, Verdict, reference, text};
use model::event::EventType;
use ports::runtime::RuntimeError;
use pull_credentials::verification::{Decision, Policy, decide};

use crate::deps::Tools;
use crate::pull::pull;
use crate::pulls::Manager;
use crate::request::{Request, emit_for_pod, failure, of_image};

/// Makes sure that the image is there.
pub(crate) async fn run(
    tools: Tools,
    manager: Arc<dyn Manager>,
    ask: EnsureImage,
) -> Result<EnsuredImage, ImageFailure> {
    let parsed = reference::with_default_tag(&ask.image).and_then(|n| Ok((reference::repository(&n)?, n)));
    match parsed {
        Ok((repository, name)) => ensure(&Request::new(tools, manager, ask, (name, repository))).await,
        Err(e) => {
            let message = text::bad_name(&ask.image, &e);
            emit_for_pod(&tools, &ask, EventType::Warning, text::INSPECT_FAILED, message.clone());
            Err(failure(text::INVALID_IMAGE_NAME, message))
        }
    }
}

async fn ensure(request: &Request) -> Result<EnsuredImage, ImageFailure> {
    let policy = PullPolicy::parse(&request.ask.pull_policy);
    if !policy.inspects() {
        count(request, "unknown", "true");
        return pull(request).await;
    }
    request.tools.effects.hit("inspect").await;
    let found = request.inspect().await.map_err(|e| {
        count(request, "unknown", "unknown");
        inspect_failed(request, &e)
    })?;
    let present = if found.is_some() { "true" } else { "false" };
    let usable = match &found {
        Some(image) => may_use(request, &image.id).await.inspect_err(|_| count(request, present, "unknown"))?,
        None => false,
    };
    let verdict = Verdict::of(policy, usable);
    count(request, present, if matches!(verdict, Verdict::Present) { "false" } else { "true" });
    match verdict {
        Verdict::Present => {
            let verified = request.tools.config.verification.is_some();
            let text = if verified { text::present } else { text::present_unverified };
            request.emit(EventType::Normal, text::PULLED, text(&request.ask.image));
            let image = found.map(|i| of_image(&i)).unwrap_or_default();
            request.note_image(&image.image_ref, false);
            Ok(image)
        }
        // Also where the image is here for other pods only: nobody may learn that it is.
        Verdict::Refused => {
            let message = text::never_pull(&request.ask.image);
            request.emit(EventType::Warning, text::ERR_IMAGE_NEVER_PULL, message.clone());
            Err(failure(text::ERR_IMAGE_NEVER_PULL, message))
        }
        Verdict::Pull => pull(request).await,
    }
}

fn count(request: &Request, present: &str, pull: &str) {
    let policy = request.ask.pull_policy.to_ascii_lowercase();
    metrics::images::ENSURE_REQUESTS.with_label_values(&[&*policy, present, pull]).inc();
}

/// Whether this pod may use the image that is here.
async fn may_use(request: &Request, image_ref: &str) -> Result<bool, ImageFailure> {
    let Some(policy) = &request.tools.config.verification else { return Ok(true) };
    if *policy == Policy::NeverVerify {
        return Ok(true);
    }
    let (image, id) = (request.ask.image.clone(), image_ref.to_owned());
    let trace = request.tools.records(move |r| r.trace(&image, &id)).await;
    let repository = &request.repository;
    // Most images are open to all; then no secret is looked at and no plugin asked.
    if decide(policy, repository, &trace, &[]) == Decision::Use(None) {
        checked("credentialPolicyAllowed");
        return Ok(true);
    }
    let credentials = request.credentials().await.inspect_err(|_| checked("error"))?;
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
            let (id, repository, now) = (image_ref.to_owned(), repository.clone(), request.tools.now());
            if let Err(e) = request.tools.records(move |r| r.note(&id, &repository, Some(&access), now)).await {
                tracing::warn!(error = %actor::chain(&e), "a pull record cannot be written");
            }
            Ok(true)
        }
    }
}

fn inspect_failed(request: &Request, e: &RuntimeError) -> ImageFailure {
    let message = text::inspect_failed(&request.ask.image, &e.go_text());
    request.emit(EventType::Warning, text::INSPECT_FAILED, message.clone());
    failure(text::IMAGE_INSPECT_ERROR, message)
}

/// Counts a decision whether an image that is here may be used.
fn checked(result: &str) {
    metrics::images::MUST_PULL_CHECKS.with_label_values(&[result]).inc();
}
