//! Counts requests (interfaces 5.1).

use std::time::Duration;

use metrics::rest_client as counts;
use ports::api::{ApiError, Method, Throttle};

/// The HTTP method, as metrics call it.
pub(crate) fn verb(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
        Method::Patch(_) => "PATCH",
    }
}

/// One try was answered, or failed.
pub(crate) fn tried(host: &str, verb: &str, code: &str, took: Duration) {
    counts::REQUESTS.with_label_values(&[code, host, verb]).inc();
    counts::DURATION.with_label_values(&[host, verb]).observe(took.as_secs_f64());
}

/// `code` of a failure.
pub(crate) fn code(error: &ApiError) -> String {
    match error {
        ApiError::Status { code, .. } => code.to_string(),
        _ => "<error>".to_owned(),
    }
}

/// A body went out or came in.
#[allow(clippy::cast_precision_loss, reason = "numbers of metrics are doubles")]
pub(crate) fn sizes(host: &str, verb: &str, sent: usize, received: Option<usize>) {
    counts::REQUEST_SIZE.with_label_values(&[host, verb]).observe(sent as f64);
    if let Some(received) = received {
        counts::RESPONSE_SIZE.with_label_values(&[host, verb]).observe(received as f64);
    }
}

/// A request waited for the its rate limit.
pub(crate) fn waited(host: &str, verb: &str, throttle: Throttle, wait: Duration) {
    if throttle != Throttle::Unlimited {
        counts::RATE_LIMITER_DURATION.with_label_values(&[host, verb]).observe(wait.as_secs_f64());
    }
}

/// A request is sent again.
pub(crate) fn again(host: &str, verb: &str, error: &ApiError) {
    counts::RETRIES.with_label_values(&[&*code(error), host, verb]).inc();
}
