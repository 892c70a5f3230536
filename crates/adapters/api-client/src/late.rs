//! An API server that is not there yet: credentials are still being asked for.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use ports::api::{ApiError, ApiResult, ApiServer, Followed, Request, Selection};
use tokio::sync::watch;

/// Answers `NotReady` until a server is provided, and passes everything on from then on. Follows that began before begin
/// by themselves. A clone is the same.
#[derive(Clone)]
pub struct LateApi {
    message: Arc<str>,
    server: Arc<watch::Sender<Option<Arc<dyn ApiServer>>>>,
}

impl std::fmt::Debug for LateApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LateApi").field("provided", &self.is_provided()).finish_non_exhaustive()
    }
}

impl LateApi {
    /// Nothing yet; `message` says what is missing.
    #[must_use]
    pub fn new(message: &str) -> Self {
        Self { message: message.into(), server: Arc::new(watch::Sender::new(None)) }
    }

    /// Here it is; follows that wait begin now.
    pub fn provide(&self, server: Arc<dyn ApiServer>) {
        self.server.send_replace(Some(server));
    }

    /// Whether a server was provided.
    #[must_use]
    pub fn is_provided(&self) -> bool {
        self.server.borrow().is_some()
    }
}

#[async_trait]
impl ApiServer for LateApi {
    async fn call(&self, request: Request) -> ApiResult<Bytes> {
        let server = self.server.borrow().clone();
        match server {
            Some(server) => server.call(request).await,
            None => Err(ApiError::NotReady { message: self.message.to_string() }),
        }
    }

    fn follow(&self, selection: Selection) -> BoxStream<'static, Followed> {
        let mut provided = self.server.subscribe();
        // Keeps the sender: a follow may outlive every other handle.
        let this = self.clone();
        let begun = async move {
            let server = provided.wait_for(Option::is_some).await.ok().and_then(|s| s.clone());
            drop(this);
            server.map(|server| server.follow(selection)).unwrap_or_else(|| futures::stream::pending().boxed())
        };
        futures::stream::once(begun).flatten().boxed()
    }
}

#[cfg(test)]
mod tests;
