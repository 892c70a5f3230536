//! Failures: of building a client, and of requests in the words of the port.

use std::error::Error;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::RETRY_AFTER;
use hyper::{Response, StatusCode};
use ports::api::ApiError;
use serde::Deserialize;

use crate::pem::PemError;

/// Longest part of a foreign body that goes into a message.
const EXCERPT: usize = 512;
/// Failure answers are read up to here.
const FAILURE_LIMIT: usize = 64 << 10;

/// Why no client can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The machine has no list of authorities and the kubeconfig names none.
    #[error("no certificate authority is given, and the machine has no list of its own")]
    NoAuthorities,
    /// TLS settings.
    #[error("TLS cannot be set up: {message}")]
    Tls {
        /// What the library says.
        message: String,
    },
    /// Certificates or keys.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// A header cannot be made of the user agent or the token.
    #[error("{what} cannot be sent in a header")]
    Header {
        /// What was to be sent.
        what: &'static str,
    },
}

/// `metav1.Status`, as far as it matters.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    kind: String,
    status: String,
    code: u16,
    reason: String,
    message: String,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Details {
    retry_after_seconds: u64,
    causes: Option<Vec<Cause>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: String,
}

impl Status {
    /// In the words of the port; `header` is the answer's own `Retry-After`.
    pub(crate) fn into_error(self, code: StatusCode, header: Option<Duration>) -> ApiError {
        let details = self.details.unwrap_or_default();
        let body = Some(details.retry_after_seconds).filter(|s| *s > 0).map(Duration::from_secs);
        // A version from the future is told apart by its cause only.
        let too_large = details.causes.iter().flatten().any(|c| c.reason == "ResourceVersionTooLarge");
        ApiError::Status {
            code: if self.code == 0 { code.as_u16() } else { self.code },
            reason: if too_large { TOO_LARGE.to_owned() } else { self.reason },
            message: if self.message.is_empty() { plain(code) } else { self.message },
            retry_after: header.or(body),
        }
    }
}

/// Reason under which a resource version from the future is reported (a cluster restored from an older state).
pub(crate) const TOO_LARGE: &str = "ResourceVersionTooLarge";

/// Reads the failure out of an answer that is not 2xx.
pub(crate) async fn of_answer(answer: Response<Incoming>) -> ApiError {
    let code = answer.status();
    let retry_after = retry_after(&answer);
    let body = http_body_util::Limited::new(answer.into_body(), FAILURE_LIMIT).collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    if let Ok(status) = serde_json::from_slice::<Status>(&body)
        && status.kind == "Status"
        && status.status != "Success"
    {
        return status.into_error(code, retry_after);
    }
    // Not one of the API: a proxy, a panic, a load balancer.
    let text = String::from_utf8_lossy(&body);
    let text: String = text.trim().chars().take(EXCERPT).collect();
    let message = if text.is_empty() { plain(code) } else { text };
    ApiError::Status { code: code.as_u16(), reason: reason(code).to_owned(), message, retry_after }
}

fn plain(code: StatusCode) -> String {
    format!("the server answered {code}")
}

/// The reason that servers give with a code, for answers that carry none.
fn reason(code: StatusCode) -> &'static str {
    match code.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        409 => "Conflict",
        410 => "Gone",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    }
}

/// `Retry-After` in seconds; dates are not sent by API servers.
fn retry_after<B>(answer: &Response<B>) -> Option<Duration> {
    answer.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// Whether the server ended TLS on purpose (it does not like our certificate): another try would fail as this one did.
/// HTTP/2 keeps only the text of the cause.
pub(crate) fn is_alert(error: &ApiError) -> bool {
    matches!(error, ApiError::Unreachable { message } if message.contains("fatal alert"))
}

/// A failure below HTTP.
pub(crate) fn unreachable(error: &(dyn Error + 'static)) -> ApiError {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !message.ends_with(&text) {
            message = format!("{message}: {text}");
        }
        source = cause.source();
    }
    ApiError::Unreachable { message }
}
