//! A file as an answer: whole, in part, or not at all.

use std::collections::VecDeque;
use std::fs::Metadata;
use std::io;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;

use super::conditions::{self, Precondition};
use super::media;
use super::range::{self, Part, RangeError};
use super::served::Served;
use crate::respond::{error, status_text};

/// Answers with a file. Its size counts as it is now; what is appended meanwhile is left for the next request.
pub(super) async fn file(name: &str, file: Served, meta: &Metadata, method: &Method, headers: &HeaderMap) -> Response {
    let modified = conditions::modified(meta);
    let last_modified = modified.and_then(conditions::http_date);
    match conditions::check(headers, modified) {
        Precondition::Met => {}
        Precondition::NotModified => return stamped(StatusCode::NOT_MODIFIED.into_response(), last_modified),
        Precondition::Failed => return StatusCode::PRECONDITION_FAILED.into_response(),
    }
    let Ok(kind) = kind(name, &file).await else { return status_text(StatusCode::INTERNAL_SERVER_ERROR) };
    let size = meta.len();
    let asked = headers.get(header::RANGE).and_then(|v| v.to_str().ok());
    let asked = asked.filter(|_| conditions::range_holds(headers, modified));
    let parts = match asked.map(|text| range::parse(text, size)).transpose() {
        Ok(parts) => parts.unwrap_or_default(),
        Err(reason) => return stamped(unsatisfiable(reason, size), last_modified),
    };
    let whole = Part { start: 0, length: size };
    let (code, kind, pieces) = match parts.as_slice() {
        [] => (StatusCode::OK, kind.to_owned(), vec![BodyPart::File(whole)]),
        [one] => (StatusCode::PARTIAL_CONTENT, kind.to_owned(), vec![BodyPart::File(*one)]),
        several => multipart(several, kind, size),
    };
    let length: u64 = pieces.iter().map(BodyPart::length).sum();
    let body = if method == Method::HEAD { Body::empty() } else { body_of(file, pieces) };
    let mut response = (code, body).into_response();
    let h = response.headers_mut();
    h.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    h.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    if let Ok(kind) = HeaderValue::from_str(&kind) {
        h.insert(header::CONTENT_TYPE, kind);
    }
    if let [one] = parts.as_slice()
        && let Ok(range) = HeaderValue::from_str(&one.content_range(size))
    {
        h.insert(header::CONTENT_RANGE, range);
    }
    stamped(response, last_modified)
}

fn stamped(mut response: Response, at: Option<HeaderValue>) -> Response {
    if let Some(at) = at {
        response.headers_mut().insert(header::LAST_MODIFIED, at);
    }
    response
}

fn unsatisfiable(reason: RangeError, size: u64) -> Response {
    let text = match reason {
        RangeError::Invalid => "invalid range",
        RangeError::NoOverlap => "invalid range: failed to overlap",
    };
    let mut response = error(StatusCode::RANGE_NOT_SATISFIABLE, text);
    if reason == RangeError::NoOverlap
        && let Ok(range) = HeaderValue::from_str(&format!("bytes */{size}"))
    {
        response.headers_mut().insert(header::CONTENT_RANGE, range);
    }
    response
}

async fn kind(name: &str, file: &Served) -> io::Result<&'static str> {
    if let Some(kind) = media::by_name(name) {
        return Ok(kind);
    }
    Ok(media::by_bytes(&file.read(0, 512).await?))
}

/// What a body is made of.
enum BodyPart {
    Text(String),
    File(Part),
}

impl BodyPart {
    fn length(&self) -> u64 {
        match self {
            Self::Text(text) => u64::try_from(text.len()).unwrap_or(0),
            Self::File(part) => part.length,
        }
    }
}

fn multipart(parts: &[Part], kind: &str, size: u64) -> (StatusCode, String, Vec<BodyPart>) {
    let boundary = format!(
        "{:016x}{size:016x}",
        parts.iter().fold(0x9e37_79b9_7f4a_7c15_u64, |h, p| h.rotate_left(9) ^ p.start ^ p.length)
    );
    let mut pieces = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let start = if i == 0 { "" } else { "\r\n" };
        let range = part.content_range(size);
        pieces.push(BodyPart::Text(format!(
            "{start}--{boundary}\r\nContent-Range: {range}\r\nContent-Type: {kind}\r\n\r\n"
        )));
        pieces.push(BodyPart::File(*part));
    }
    pieces.push(BodyPart::Text(format!("\r\n--{boundary}--\r\n")));
    (StatusCode::PARTIAL_CONTENT, format!("multipart/byteranges; boundary={boundary}"), pieces)
}

/// Read as the client takes it. A file that shrinks meanwhile breaks the connection off, as its length was promised.
fn body_of(file: Served, pieces: Vec<BodyPart>) -> Body {
    let next = |(file, mut pieces): (Served, VecDeque<BodyPart>)| async move {
        loop {
            let part = match pieces.pop_front() {
                None => return Ok(None),
                Some(BodyPart::Text(text)) => return Ok(Some((Bytes::from(text), (file, pieces)))),
                Some(BodyPart::File(part)) => part,
            };
            if part.length == 0 {
                continue;
            }
            let chunk = file.read(part.start, part.length).await?;
            let read = u64::try_from(chunk.len()).unwrap_or(0);
            if read == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
            pieces.push_front(BodyPart::File(Part { start: part.start + read, length: part.length - read }));
            return Ok(Some((Bytes::from(chunk), (file, pieces))));
        }
    };
    Body::from_stream(stream::try_unfold((file, pieces.into()), next))
}
