//! A call as a span, in the words of the conventions for RPC that a kubelet's library follows (semantic conventions 1.39).

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use tonic::{Code, Status};
use trace::{Kind, Span};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The span of a call, until its answer has been read or is not wanted any more.
#[derive(Debug)]
pub(crate) struct Traced(Span);

impl Traced {
    pub(crate) const fn none() -> Self {
        Self(Span::none())
    }

    /// `path`: that of the request, which is `/SERVICE/METHOD`.
    pub(crate) fn begin(path: &str) -> Self {
        let name = path.trim_start_matches('/');
        let mut span = trace::span(|| name.to_owned().into(), Kind::Client);
        span.set("rpc.system.name", || "grpc");
        span.set("rpc.method", || name);
        Self(span)
    }

    /// Tells the server.
    pub(crate) fn tell(&self, headers: &mut HeaderMap) {
        let told = self.0.context().and_then(|c| HeaderValue::try_from(c.traceparent()).ok());
        if let Some(told) = told {
            headers.insert(TRACEPARENT, told);
        }
    }

    /// Headers or trailers came; the status is in one of them.
    pub(crate) fn note(&mut self, headers: &HeaderMap) {
        if !self.0.is_recorded() {
            return;
        }
        // Its words are percent-encoded on the wire.
        let Some(status) = Status::from_header_map(headers) else { return };
        self.0.set("rpc.response.status_code", || name(status.code()));
        if status.code() != Code::Ok {
            self.0.fail(|| status.message().to_owned());
        }
    }

    /// There is no answer.
    pub(crate) fn fail(&mut self, e: &(dyn std::error::Error + Send + Sync)) {
        self.0.fail(|| e.to_string());
    }
}

/// As the protocol's own documents write it.
fn name(code: Code) -> String {
    match code {
        Code::Ok => "OK".to_owned(),
        Code::Cancelled => "Canceled".to_owned(),
        other => format!("{other:?}"),
    }
}
