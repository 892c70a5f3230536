//! The client: what its holders may ask of an API server.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use ports::api::{ApiError, ApiResult, ApiServer, Followed, Request, Selection, Throttle};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::BuildError;
use crate::follow;
use crate::kubeconfig::Kubeconfig;
use crate::pem::{Identity, PemError};
use crate::settings::Settings;
use crate::transport::Transport;

/// An API server over HTTP. A clone shares connections and limits.
#[derive(Clone)]
pub struct ApiClient {
    transport: Arc<Transport>,
}

impl std::fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiClient").field("server", self.transport.server()).finish_non_exhaustive()
    }
}

impl ApiClient {
    /// A client; it connects with its first request.
    ///
    /// # Errors
    /// The kubeconfig's authorities or the user agent cannot be used.
    pub fn new(kubeconfig: &Kubeconfig, settings: Settings) -> Result<Self, BuildError> {
        Ok(Self { transport: Arc::new(Transport::new(kubeconfig, settings)?) })
    }

    /// From now on connections are made with this client certificate. Requests under way end on their old connections,
    /// watches go over to new ones without a gap.
    ///
    /// # Errors
    /// Certificate and key cannot be used; the old ones stay.
    pub fn set_identity(&self, certificate_pem: &[u8], key_pem: &[u8]) -> Result<(), PemError> {
        let identity = Identity::from_pem(certificate_pem, key_pem)?;
        self.transport.show(identity);
        Ok(())
    }

    /// Ticks each time connections were exchanged.
    #[must_use]
    pub fn exchanges(&self) -> watch::Receiver<u64> {
        self.transport.generation.subscribe()
    }
}

#[async_trait]
impl ApiServer for ApiClient {
    async fn call(&self, request: Request) -> ApiResult<Bytes> {
        let deadline = Instant::now() + request.deadline;
        let mut last = None;
        let answer = tokio::time::timeout_at(deadline, self.transport.tries(&request, deadline, &mut last)).await;
        // What the server said last says more than that time is over.
        let answer = answer.unwrap_or_else(|_| Err(last.unwrap_or(ApiError::TimedOut { after: request.deadline })));
        if request.throttle == Throttle::Unlimited {
            self.transport.beat(&answer);
        }
        answer
    }

    fn follow(&self, selection: Selection) -> BoxStream<'static, Followed> {
        follow::follow(self.transport.clone(), selection)
    }
}
