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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::{Limits, Queue, Sampler, Value};

    use super::*;

    #[tokio::test]
    async fn the_trace_of_a_known_caller_goes_on_and_another_one_s_does_not() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let request = |path: &str| {
            let request = Request::builder().uri(path).header("traceparent", parent);
            request.body(Body::empty()).unwrap()
        };
        assert_eq!(begin(&request("/pods"), true).context(), None, "nothing is traced");
        let queue = Arc::new(Queue::new(Limits { batch: 1, ..Limits::default() }));
        assert!(
            trace::install(Sampler::per_million(0), queue.clone(), Arc::new(|| 1)),
            "one test to a process (nextest)"
        );
        let strange = begin(&request("/pods"), false);
        assert_ne!(strange.context().map(|c| c.trace), Context::parse(parent).map(|c| c.trace));
        assert!(!strange.is_recorded(), "a stranger does not decide what is recorded");
        end(begin(&request("/containerLogs/ns/pod/c"), true), StatusCode::BAD_GATEWAY);
        let spans = queue.batch().await;
        let [span] = &spans[..] else { panic!("{spans:?}") };
        assert_eq!((&*span.name, span.is_remote, span.kind), ("/containerLogs", true, Kind::Server));
        assert_eq!(span.parent, Context::parse(parent).map(|c| c.span));
        assert!(span.attributes.contains(&("http.response.status_code", Value::Int(502))), "{span:?}");
        assert_eq!(span.error.as_deref(), Some("502 Bad Gateway"));
    }
}
