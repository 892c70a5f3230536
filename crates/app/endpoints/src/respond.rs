//! Answers in the forms of Go's HTTP library, which clients know.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any};

pub(crate) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// An error as Go's own servers write it: the text, and a new line.
pub(crate) fn error(code: StatusCode, text: impl Into<String>) -> Response {
    let mut text = text.into();
    text.push('\n');
    let mut response = (code, text).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}

/// An error as a kubelet's router writes it: the bare text, which the API server passes on (interfaces 3.11).
pub(crate) fn bare(code: StatusCode, text: impl Into<String>) -> Response {
    let mut response = (code, text.into()).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
    response
}

/// Text for people.
pub(crate) fn plain(text: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, TEXT)], text.into()).into_response()
}

/// A JSON document.
pub(crate) fn json(body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body.into()).into_response()
}

/// Any method, always the same refusal.
pub(crate) fn refuse<S: Clone + Send + Sync + 'static>(code: StatusCode, text: &'static str) -> MethodRouter<S> {
    any(move || async move { error(code, text) })
}

/// Any method, to the path with its slash.
pub(crate) fn see<S: Clone + Send + Sync + 'static>(path: &'static str) -> MethodRouter<S> {
    any(move || async move { (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, path)]) })
}

/// The router knows the path and not the method.
pub(crate) async fn method_not_allowed() -> Response {
    bare(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed")
}

/// `404 Not Found`, as text.
pub(crate) fn status_text(code: StatusCode) -> Response {
    error(code, format!("{} {}", code.as_u16(), code.canonical_reason().unwrap_or_default()))
}
