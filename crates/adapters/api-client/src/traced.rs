//! A request as a span, in the words of the conventions for HTTP that a kubelet's library follows.

use hyper::Request;
use hyper::header::{HeaderName, HeaderValue};
use ports::api::ApiError;
use trace::{Kind, Span};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The span of one try, until the head of its answer.
pub(crate) struct Traced(Span);

impl Traced {
    pub(crate) fn begin(method: &'static str) -> Self {
        let mut span = trace::span(|| format!("HTTP {method}").into(), Kind::Client);
        span.set("http.request.method", || method);
        Self(span)
    }

    /// Tells the server.
    pub(crate) fn tell<B>(&mut self, request: &mut Request<B>) {
        let told = self.0.context().and_then(|c| HeaderValue::try_from(c.traceparent()).ok());
        if let Some(told) = told {
            request.headers_mut().insert(TRACEPARENT, told);
        }
        let uri = request.uri();
        self.0.set("url.full", || uri.to_string());
        self.0.set("server.address", || uri.host().unwrap_or_default());
        if let Some(port) = uri.port_u16() {
            self.0.set("server.port", || i64::from(port));
        }
    }

    /// `code`: as metrics call it.
    pub(crate) fn end(mut self, code: &str, error: Option<&ApiError>) {
        if let Ok(code) = code.parse::<i64>() {
            self.0.set("http.response.status_code", || code);
        }
        if let Some(error) = error {
            self.0.fail(|| error.to_string());
        }
    }
}
