//! `/debug/flags/v` (interfaces 3.2): the verbosity of the log.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode, header};
use axum::response::Response;

use crate::deps::{Deps, Shared};
use crate::respond::TEXT;

pub(crate) async fn verbosity(State(deps): Shared, method: Method, body: Bytes) -> Response {
    if method != Method::PUT {
        return line(StatusCode::NOT_ACCEPTABLE, "unsupported http method");
    }
    let text = String::from_utf8_lossy(&body);
    match set(&deps, &text) {
        Ok(()) => line(StatusCode::OK, format!("successfully set klog.logging.verbosity to {text}")),
        Err(reason) => line(StatusCode::BAD_REQUEST, format!("failed set klog.logging.verbosity {text}: {reason}")),
    }
}

/// A negative number is as quiet as 0.
fn set(deps: &Deps, text: &str) -> Result<(), String> {
    let level: i32 = text.parse().map_err(|_| format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))?;
    (deps.set_verbosity)(u32::try_from(level).unwrap_or(0))
}

fn line(code: StatusCode, text: impl Into<String>) -> Response {
    let mut text = text.into();
    text.push('\n');
    let mut response = Response::new(text.into());
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
    response
}
