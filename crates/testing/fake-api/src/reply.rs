//! Answers: whole bodies, and failures as an API server tells them.

use std::io;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::{Response, StatusCode};
use ports::api::ApiError;
use serde_json::{Value, json};

pub(crate) type Body = BoxBody<Bytes, io::Error>;

pub(crate) fn whole(code: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut answer = Response::new(Full::new(body.into()).map_err(|never| match never {}).boxed());
    *answer.status_mut() = code;
    answer.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    answer
}

/// A failure as `metav1.Status`.
pub(crate) fn failure(error: &ApiError) -> Response<Body> {
    let code = StatusCode::from_u16(error.code().unwrap_or(500)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = whole(code, status(error).to_string());
    if let Some(wait) = error.retry_after() {
        answer.headers_mut().insert(RETRY_AFTER, wait.as_secs().into());
    }
    answer
}

/// `metav1.Status` of a failure.
pub(crate) fn status(error: &ApiError) -> Value {
    let (code, reason, message) = match error {
        ApiError::Status { code, reason, message, .. } => (*code, reason.as_str(), message.clone()),
        other => (500, "InternalError", other.to_string()),
    };
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    if reason == "ResourceVersionTooLarge" {
        status["reason"] = "Timeout".into();
        let cause = json!({ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" });
        status["details"] = json!({ "causes": [cause], "retryAfterSeconds": 1 });
    }
    status
}
