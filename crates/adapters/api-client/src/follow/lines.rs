//! Lines of a chunked body.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use ports::api::{ApiError, ApiResult};

use crate::error;

/// No object is as large as this.
const LINE_LIMIT: usize = 16 << 20;
/// What is kept of the buffer between lines.
const KEEP: usize = 16 << 10;

pub(super) struct Lines {
    body: Incoming,
    /// Begin of a line whose end has not come.
    part: Vec<u8>,
    /// What came and was not looked at.
    rest: Bytes,
}

impl Lines {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, part: Vec::new(), rest: Bytes::new() }
    }

    /// The next line without its end; `None` after the last. Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> ApiResult<Option<Bytes>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.rest) {
                let tail = self.rest.split_to(at + 1).slice(..at);
                let line = if self.part.is_empty() { tail } else { self.completed(&tail) };
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Ok(Some(line));
            }
            self.part.extend_from_slice(&self.rest);
            self.rest = Bytes::new();
            if self.part.len() > LINE_LIMIT {
                return Err(ApiError::Garbage { message: "a line of the watch has no end".to_owned() });
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                Some(Err(e)) => return Err(error::unreachable(&e)),
                None => return Ok(None),
            }
        }
    }

    fn completed(&mut self, tail: &[u8]) -> Bytes {
        self.part.extend_from_slice(tail);
        let line = Bytes::copy_from_slice(&self.part);
        self.part.clear();
        self.part.shrink_to(KEEP);
        line
    }
}
