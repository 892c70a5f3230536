//! A request from its head to the last byte of its answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use node_access::Labels;
use tokio::time::{Instant, Sleep};

use super::connection_state::ConnectionState;

/// Counts a request as under way while it lives.
pub(super) struct Underway {
    conn: Arc<ConnectionState>,
    labels: [&'static str; 4],
    began: Instant,
}

impl Underway {
    pub(super) fn begin(conn: Arc<ConnectionState>, labels: Labels, server: &'static str) -> Self {
        conn.request_begins();
        let labels = [labels.method, labels.path, server, labels.long_running];
        metrics::http::REQUESTS.with_label_values(&labels).inc();
        metrics::http::INFLIGHT.with_label_values(&labels).inc();
        Self { conn, labels, began: Instant::now() }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.conn.request_ends();
        metrics::http::INFLIGHT.with_label_values(&self.labels).dec();
        let took = self.began.elapsed().as_secs_f64();
        metrics::http::DURATION.with_label_values(&self.labels).observe(took);
    }
}

/// Largest piece of an answer that is handed on at once, bytes. HTTP/1 queues up to 16 of them for a reader who does not read.
const PIECE: usize = 4 << 10;

/// The body of an answer: the request is under way until it ends, it ends in time, and it comes in small pieces.
pub(super) struct ResponseBody {
    body: Body,
    /// What is left of a piece that was too large.
    rest: Bytes,
    underway: Option<Underway>,
    ends: Pin<Box<Sleep>>,
}

impl ResponseBody {
    pub(super) fn new(body: Body, underway: Underway, ends: Instant) -> Self {
        Self { body, rest: Bytes::new(), underway: Some(underway), ends: Box::pin(tokio::time::sleep_until(ends)) }
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.ends.as_mut().poll(cx).is_ready() {
            let late = std::io::Error::new(std::io::ErrorKind::TimedOut, "the answer took too long");
            return Poll::Ready(Some(Err(axum::Error::new(late))));
        }
        if self.rest.is_empty() {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if data.len() > PIECE => self.rest = data,
                    Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Poll::Ready(None) => {
                    self.underway = None;
                    return Poll::Ready(None);
                }
                other => return other,
            }
        }
        let piece = PIECE.min(self.rest.len());
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        // In this order: the lower bound must never be above the upper one.
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

#[cfg(test)]
mod tests;
