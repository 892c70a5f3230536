//! Connections that end with the daemon that made them.
//!
//! A killed process answers nobody and calls nobody. Tasks on the tokio pool outlive the daemon's actors here, so their way
//! to the runtime and the API server is cut instead.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use actor::watch;
use async_trait::async_trait;
use bytes::Bytes;
use cri_client::{Connector, Io};
use fakes::FakeApi;
use futures::stream::BoxStream;
use ports::api::{ApiError, ApiResult, ApiServer, Followed, Request, Selection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Cuts when it is dropped.
#[derive(Debug)]
pub(crate) struct Leash(watch::Sender<()>);

/// `connector`, as long as the leash lives.
pub(crate) fn leashed(connector: Connector) -> (Leash, Rope, Connector) {
    let (leash, held) = watch::channel(());
    let rope = Rope(held.clone());
    let leashed: Connector = Arc::new(move || {
        let (held, open) = (held.clone(), connector());
        Box::pin(async move {
            if held.has_changed().is_err() {
                return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "the daemon is dead"));
            }
            let io = open.await?;
            Ok(Box::new(Line { io, cut: Some(cut(held)) }) as Box<dyn Io>)
        })
    });
    (Leash(leash), rope, leashed)
}

/// Tells whether the daemon lives.
#[derive(Clone, Debug)]
pub(crate) struct Rope(watch::Receiver<()>);

/// The API server, as long as the daemon lives.
#[derive(Debug)]
pub(crate) struct LeashedApi {
    api: FakeApi,
    rope: Rope,
}

impl LeashedApi {
    pub(crate) fn new(api: FakeApi, rope: Rope) -> Self {
        Self { api, rope }
    }
}

#[async_trait]
impl ApiServer for LeashedApi {
    async fn call(&self, request: Request) -> ApiResult<Bytes> {
        if self.rope.0.has_changed().is_err() {
            return Err(ApiError::Unreachable { message: "the daemon is dead".to_owned() });
        }
        self.api.call(request).await
    }

    fn follow(&self, selection: Selection) -> BoxStream<'static, Followed> {
        self.api.follow(selection)
    }
}

impl Leash {
    pub(crate) fn cut(self) {
        drop(self.0);
    }
}

type Cut = Pin<Box<dyn Future<Output = ()> + Send>>;

fn cut(mut held: watch::Receiver<()>) -> Cut {
    Box::pin(async move { while held.changed().await.is_ok() {} })
}

struct Line {
    io: Box<dyn Io>,
    cut: Option<Cut>,
}

impl Line {
    fn is_cut(&mut self, cx: &mut Context<'_>) -> bool {
        if self.cut.as_mut().is_some_and(|cut| cut.as_mut().poll(cx).is_ready()) {
            self.cut = None;
        }
        self.cut.is_none()
    }
}

impl AsyncRead for Line {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_cut(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_cut(cx) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
