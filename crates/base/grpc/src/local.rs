//! Calls to a server of this process: no HTTP/2, no bytes on a wire.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::future::{BoxFuture, Either, select};
use hyper::body::{Body, Frame};
use hyper::{Request, Response};

pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// A server of this process, and one connection to it. It has no task of its own: what it does it does while its caller is polled, and
/// its panic is the caller's.
pub trait Local: Send + Sync {
    /// Answers a call. What it returns is dropped when nobody waits for the answer any more, or when the caller finds the connection
    /// broken.
    fn call(&self, call: Request<tonic::body::Body>) -> BoxFuture<'static, Response<tonic::body::Body>>;

    /// Ends when the connection breaks, at once if it is broken already, and says why.
    fn broken(&self) -> BoxFuture<'static, io::Error>;
}

/// Sends a call. A connection that breaks meanwhile has no answer for it, whatever the server did.
pub(crate) async fn send(to: &dyn Local, call: Request<tonic::body::Body>) -> Result<Response<LocalBody>, Error> {
    match select(to.broken(), to.call(call)).await {
        Either::Left((why, _)) => Err(why.into()),
        Either::Right((answer, broken)) => Ok(answer.map(|body| LocalBody { body: Some(body), broken })),
    }
}

/// The body of an answer, for as long as the connection holds.
pub(crate) struct LocalBody {
    /// Goes with the connection.
    body: Option<tonic::body::Body>,
    broken: BoxFuture<'static, io::Error>,
}

impl std::fmt::Debug for LocalBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LocalBody({:?})", self.body)
    }
}

impl LocalBody {
    /// What is there already comes before the news of the connection.
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let why = ready!(self.broken.as_mut().poll(cx));
        self.body = None;
        Poll::Ready(Some(Err(why.into())))
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }
}
