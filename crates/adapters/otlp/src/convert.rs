//! Spans to messages.

use trace::{Finished, Kind, Value};

use crate::messages::{
    AnyValue, ExportRequest, KeyValue, Resource, ResourceSpans, Scalar, Scope, ScopeSpans, Span, Status,
};

/// `Status.STATUS_CODE_ERROR`.
const ERROR: i32 = 2;
/// `SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK`: what follows is known.
const HAS_IS_REMOTE: u32 = 0x100;
/// `SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK`: the parent is in another process.
const IS_REMOTE: u32 = 0x200;
/// The trace is recorded (W3C Trace Context).
const SAMPLED: u32 = 1;

/// All of a batch, as from one source.
pub(crate) fn request(resource: &[(&'static str, String)], batch: Vec<Finished>) -> ExportRequest {
    let attributes = resource.iter().map(|(key, value)| pair(key, value.clone().into())).collect();
    let scope = Scope { name: "bosun".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let spans = batch.into_iter().map(span).collect();
    let resource = Some(Resource { attributes });
    ExportRequest {
        resource_spans: vec![ResourceSpans { resource, scope_spans: vec![ScopeSpans { scope: Some(scope), spans }] }],
    }
}

fn span(span: Finished) -> Span {
    let kind = match span.kind {
        Kind::Internal => 1,
        Kind::Server => 2,
        Kind::Client => 3,
    };
    Span {
        trace_id: span.context.trace.get().to_be_bytes().to_vec(),
        span_id: span.context.span.get().to_be_bytes().to_vec(),
        parent_span_id: span.parent.map(|p| p.get().to_be_bytes().to_vec()).unwrap_or_default(),
        name: span.name.into_owned(),
        kind,
        start_time_unix_nano: span.began_ns,
        end_time_unix_nano: span.ended_ns,
        attributes: span.attributes.into_iter().map(|(key, value)| pair(key, value)).collect(),
        status: span.error.map(|message| Status { message, code: ERROR }),
        flags: SAMPLED | HAS_IS_REMOTE | if span.is_remote { IS_REMOTE } else { 0 },
    }
}

fn pair(key: &str, value: Value) -> KeyValue {
    let value = match value {
        Value::Text(text) => Scalar::Text(text),
        Value::Int(number) => Scalar::Int(number),
    };
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}
