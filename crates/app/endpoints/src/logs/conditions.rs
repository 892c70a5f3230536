//! Conditional requests (RFC 9110), for content that has a time and no tag.

use std::fs::Metadata;
use std::time::UNIX_EPOCH;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// Seconds since 1970 of the last change; `None`: not known, and Go treats 1970 itself so.
pub(super) fn modified(meta: &Metadata) -> Option<i64> {
    let since = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok().filter(|s| *s > 0)
}

pub(super) fn http_date(seconds: i64) -> Option<HeaderValue> {
    let at = Timestamp::from_second(seconds).ok()?;
    let text = rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&at).ok()?;
    HeaderValue::from_str(&text).ok()
}

/// A date of a header in seconds since 1970.
fn date(headers: &HeaderMap, name: &HeaderName) -> Option<i64> {
    let text = headers.get(name)?.to_str().ok()?;
    Some(rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?.as_second())
}

/// What a request's conditions come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Precondition {
    Met,
    NotModified,
    Failed,
}

/// The conditions that concern the whole of the content. Nothing here has a tag, so only `*` fits one.
pub(super) fn check(headers: &HeaderMap, modified: Option<i64>) -> Precondition {
    let star = |name: &HeaderName| {
        let mut all = headers.get_all(name).iter().peekable();
        all.peek()?;
        Some(all.any(|v| v.as_bytes().split(|b| *b == b',').any(|tag| tag.trim_ascii() == b"*")))
    };
    match star(&header::IF_MATCH) {
        Some(false) => return Precondition::Failed,
        Some(true) => {}
        None => {
            if let (Some(since), Some(at)) = (date(headers, &header::IF_UNMODIFIED_SINCE), modified)
                && at > since
            {
                return Precondition::Failed;
            }
        }
    }
    match star(&header::IF_NONE_MATCH) {
        Some(true) => return Precondition::NotModified,
        Some(false) => {}
        None => {
            if let (Some(since), Some(at)) = (date(headers, &header::IF_MODIFIED_SINCE), modified)
                && at <= since
            {
                return Precondition::NotModified;
            }
        }
    }
    Precondition::Met
}

/// Whether a range still fits the content that the client has a part of.
pub(super) fn range_holds(headers: &HeaderMap, modified: Option<i64>) -> bool {
    headers.get(header::IF_RANGE).is_none() || (modified.is_some() && date(headers, &header::IF_RANGE) == modified)
}

/// A folder's page: 304 while the folder did not change.
pub(super) fn unless_unchanged(meta: &Metadata, headers: &HeaderMap, page: impl FnOnce() -> Response) -> Response {
    let modified = modified(meta);
    let since = date(headers, &header::IF_MODIFIED_SINCE);
    if let (Some(since), Some(at)) = (since, modified)
        && at <= since
    {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    let mut response = page();
    if let Some(at) = modified.and_then(http_date) {
        response.headers_mut().insert(header::LAST_MODIFIED, at);
    }
    response
}
