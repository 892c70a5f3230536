//! The client's side of an HTTP upgrade, over any transport.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use axum::http::response::Parts;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::Request;
use hyper::client::conn::http1;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

/// A refusal's body that is passed on; the rest of a longer one is not waited for.
const BODY: usize = 1 << 20;
/// How long a refusal's body may take (interfaces 3.7).
const BODY_TIME: Duration = Duration::from_secs(10);

/// Why there was no answer.
#[derive(Debug, Error)]
pub(crate) enum HandshakeError {
    #[error("the other side answers no HTTP: {0}")]
    Http(#[from] hyper::Error),
    #[error("the other side did not answer in time")]
    Timeout,
}

/// What the other side answered.
pub(crate) enum Answer {
    /// 101: the connection is ours, early bytes included.
    Switched(Parts, TokioIo<Upgraded>),
    /// Anything else, with its body.
    Refused(Parts, Bytes),
}

/// Sends the request and waits for the answer. Dropping the future closes the connection.
pub(crate) async fn upgrade<T>(io: T, request: Request<Empty<Bytes>>, limit: Duration) -> Result<Answer, HandshakeError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::time::timeout(limit, ask(io, request)).await.map_err(|_| HandshakeError::Timeout)?
}

async fn ask<T>(io: T, request: Request<Empty<Bytes>>) -> Result<Answer, HandshakeError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.title_case_headers(true);
    let (mut sender, connection) = builder.handshake(TokioIo::new(io)).await?;
    let mut connection = Beside(Some(Box::pin(connection.with_upgrades())));
    let response = connection.run(sender.send_request(request)).await?;
    if response.status() == hyper::StatusCode::SWITCHING_PROTOCOLS {
        let mut response = response;
        let upgraded = connection.run(hyper::upgrade::on(&mut response)).await?;
        return Ok(Answer::Switched(response.into_parts().0, TokioIo::new(upgraded)));
    }
    let (parts, body) = response.into_parts();
    let body = connection.run(tokio::time::timeout(BODY_TIME, Limited::new(body, BODY).collect())).await;
    // A body that comes late, broken or too long leaves the status alone.
    let body = body.ok().and_then(Result::ok).map(http_body_util::Collected::to_bytes).unwrap_or_default();
    Ok(Answer::Refused(parts, body))
}

/// A connection that must be polled while something is awaited that depends on it. No task of its own: what is dropped
/// is closed.
struct Beside<C>(Option<Pin<Box<C>>>);

impl<C: Future> Beside<C> {
    async fn run<F: Future>(&mut self, other: F) -> F::Output {
        let mut other = std::pin::pin!(other);
        std::future::poll_fn(|cx| {
            if let Some(connection) = &mut self.0
                && connection.as_mut().poll(cx).is_ready()
            {
                // Its error, if any, comes out of what is awaited.
                self.0 = None;
            }
            match other.as_mut().poll(cx) {
                Poll::Ready(output) => Poll::Ready(output),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}
