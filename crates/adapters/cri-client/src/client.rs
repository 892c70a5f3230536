//! The client: connection, deadlines, checks of what comes back.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use grpc::{Channel, Connections, Connector, Gate};
use hyper::Uri;
use ports::runtime::{RuntimeCode, RuntimeError, RuntimeResult};
use tokio::time::timeout;
use tonic::{Response, Status};

use crate::deadline::Deadlines;
use crate::stubs::containerd::events_client::EventsClient;
use crate::stubs::cri::image_service_client::ImageServiceClient;
use crate::stubs::cri::runtime_service_client::RuntimeServiceClient;
use crate::{Endpoint, MAX_MESSAGE, status};

mod check;
mod images;
mod runtime;

/// How to reach the runtime.
#[derive(Clone, Debug)]
pub struct Options {
    /// `containerRuntimeEndpoint`.
    pub runtime: Endpoint,
    /// `imageServiceEndpoint`; the same socket and connection when absent.
    pub images: Option<Endpoint>,
    /// From `runtimeRequestTimeout`.
    pub deadlines: Deadlines,
    /// Seed of the jitter in the reconnect back-off.
    pub seed: u64,
}

/// CRI over gRPC. Cheap to clone; connects on first use and again whenever the runtime comes back.
#[derive(Clone)]
pub struct CriClient {
    runtime: RuntimeServiceClient<Channel>,
    images: ImageServiceClient<Channel>,
    containerd: EventsClient<Channel>,
    deadlines: Deadlines,
    absent: Arc<Absent>,
    names: Arc<Names>,
}

#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) runtime: String,
    pub(crate) images: String,
}

impl CriClient {
    /// A client for the sockets of `options`. Must be called inside a tokio runtime; does not connect yet.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        for endpoint in std::iter::once(&options.runtime).chain(&options.images) {
            if let Some(text) = endpoint.deprecation() {
                tracing::warn!(endpoint = %endpoint, "{text}");
            }
        }
        let socket = |e: &Endpoint| grpc::unix(Path::new(e.path()).to_path_buf());
        let names = Names {
            runtime: options.runtime.to_string(),
            images: options.images.as_ref().unwrap_or(&options.runtime).to_string(),
        };
        let images = options.images.as_ref().filter(|i| i.path() != options.runtime.path()).map(socket);
        Self::build(socket(&options.runtime), images, names, options.deadlines, options.seed)
    }

    /// A client over a connector of the caller's, for runtime and images both. `name` stands for the endpoint in errors.
    #[must_use]
    pub fn with_connector(name: &str, connector: Connector, deadlines: Deadlines, seed: u64) -> Self {
        let names = Names { runtime: name.to_owned(), images: name.to_owned() };
        Self::build(connector, None, names, deadlines, seed)
    }

    fn build(runtime: Connector, images: Option<Connector>, names: Names, deadlines: Deadlines, seed: u64) -> Self {
        let gate = Gate::new(runtime, seed);
        let made = gate.connections().clone();
        let untraced = Channel::new(gate);
        let channel = untraced.traced();
        let image_channel = match images {
            Some(connector) => Channel::new(Gate::new(connector, seed.wrapping_add(1))).traced(),
            None => channel.clone(),
        };
        // A legal host name: some servers refuse a path there.
        let origin = Uri::from_static("http://localhost");
        Self {
            runtime: RuntimeServiceClient::with_origin(channel, origin.clone()).max_decoding_message_size(MAX_MESSAGE),
            images: ImageServiceClient::with_origin(image_channel, origin.clone())
                .max_decoding_message_size(MAX_MESSAGE),
            // One stream for the life of a connection, which is nobody's request.
            containerd: EventsClient::with_origin(untraced, origin).max_decoding_message_size(MAX_MESSAGE),
            deadlines,
            absent: Arc::new(Absent { made, calls: Mutex::default() }),
            names: Arc::new(names),
        }
    }

    /// The runtime service's endpoint, for messages.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.names.runtime
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    pub(crate) fn containerd(&self) -> EventsClient<Channel> {
        self.containerd.clone()
    }

    pub(crate) fn stub(&self) -> RuntimeServiceClient<Channel> {
        self.runtime.clone()
    }

    pub(crate) fn absent(&self) -> &Arc<Absent> {
        &self.absent
    }
}

/// Runs one call under its deadline; the timer is ours, because a client-side gRPC timeout reads as `Cancelled`.
///
/// The call goes into a box at once: with its request it takes some 15 KiB, and each async block on the way to the
/// socket would hold it twice, so that creating a container moved and zeroed more than 100 KiB.
pub(crate) fn call<T>(
    limit: Option<Duration>,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> impl Future<Output = RuntimeResult<T>> {
    let call = Box::pin(call);
    async move {
        let answer = match limit {
            None => call.await,
            Some(limit) => timeout(limit, call)
                .await
                .map_err(|_| RuntimeError::new(RuntimeCode::DeadlineExceeded, "context deadline exceeded"))?,
        };
        answer.map(Response::into_inner).map_err(|s| status::error(&s))
    }
}

/// Calls that this runtime does not implement; forgotten with each new connection, which may lead to a newer version.
#[derive(Debug)]
pub(crate) struct Absent {
    made: Connections,
    calls: Mutex<BTreeMap<&'static str, u64>>,
}

impl Absent {
    /// Whether `name` was answered Unimplemented on the connection in use.
    pub(crate) fn knows(&self, name: &'static str) -> bool {
        self.calls().get(name) == Some(&self.made.count())
    }

    pub(crate) fn remember(&self, name: &'static str) {
        let now = self.made.count();
        if self.calls().insert(name, now) != Some(now) {
            tracing::info!(call = name, "the runtime does not implement this call");
        }
    }

    /// Runs an optional call, or answers at once when it is known to be missing.
    pub(crate) async fn optional<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = RuntimeResult<T>>,
    ) -> RuntimeResult<T> {
        if self.knows(name) {
            return Err(RuntimeError::new(RuntimeCode::Unimplemented, format!("unknown method {name}")));
        }
        let answer = call.await;
        if answer.as_ref().is_err_and(RuntimeError::is_unimplemented) {
            self.remember(name);
        }
        answer
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, u64>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
