//! Connections that end with the daemon that made them.
//!
//! A killed process answers nobody and calls nobody. Tasks on the tokio pool outlive the daemon's actors here, so their way
//! to the runtime and the API server is cut instead.

use std::io;
use std::sync::Arc;

use actor::watch;
use async_trait::async_trait;
use bytes::Bytes;
use cri_client::{Connector, Link, Local};
use fakes::FakeApi;
use futures::FutureExt;
use futures::future::{BoxFuture, select};
use futures::stream::BoxStream;
use ports::api::{ApiError, ApiResult, ApiServer, Followed, Request, Selection};
use tonic::body::Body;
use tonic::codegen::http;

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
            match open.await? {
                Link::Local(server) => Ok(Link::Local(Arc::new(Leashed { server, held }))),
                Link::Stream(_) => Err(io::Error::other("the fake runtime is in this process")),
            }
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

/// A connection to the runtime, as long as the daemon lives.
struct Leashed {
    server: Arc<dyn Local>,
    held: watch::Receiver<()>,
}

impl Local for Leashed {
    fn call(&self, call: http::Request<Body>) -> BoxFuture<'static, http::Response<Body>> {
        self.server.call(call)
    }

    fn broken(&self) -> BoxFuture<'static, io::Error> {
        let (mut held, broken) = (self.held.clone(), self.server.broken());
        let cut = async move {
            while held.changed().await.is_ok() {}
            io::ErrorKind::ConnectionReset.into()
        };
        Box::pin(select(Box::pin(cut), broken).map(|first| first.factor_first().0))
    }
}
