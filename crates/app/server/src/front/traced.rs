//! A request that was let in as a span, as a kubelet's filter makes one (otelrestful).

use axum::body::Body;
use axum::http::{Request, StatusCode};
use trace::{Context, Kind, Span};

/// The span of a request, until the head of its answer. The caller's own trace goes on only where callers are known.
pub(super) fn begin(request: &Request<Body>, known_caller: bool) -> Span {
    if !trace::is_on() {
        return Span::none();
    }
    let told = request.headers().get("traceparent").and_then(|t| t.to_str().ok()).filter(|_| known_caller);
    let (method, path) = (request.method().as_str(), request.uri().path());
    let name = || format!("/{}", path.split('/').nth(1).unwrap_or_default()).into();
    let mut span = trace::root(name, Kind::Server, told.and_then(Context::parse));
    span.set("http.request.method", || method);
    span.set("url.path", || path);
    span
}

/// A failure is one of the server's, not of what it was asked for.
pub(super) fn end(mut span: Span, status: StatusCode) {
    span.set("http.response.status_code", || i64::from(status.as_u16()));
    if status.is_server_error() {
        span.fail(|| status.to_string());
    }
}
