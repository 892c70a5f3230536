//! Answers other than a stream.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

/// An answer other than a stream. Boxed: it is the rare way, and large.
pub(crate) type Refusal = Box<Response>;

pub(crate) fn refuse(status: StatusCode, text: String) -> Refusal {
    Box::new(plain(status, text))
}

/// A text answer.
pub(crate) fn plain(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
