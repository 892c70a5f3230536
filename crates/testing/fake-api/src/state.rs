//! What the server knows while it runs.

use std::sync::{Mutex, PoisonError};

use fakes::FakeApi;
use tokio_rustls::TlsAcceptor;

use crate::trouble::{HttpTroubles, WatchTrouble};

/// One connection that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// DER of the client's certificate.
    pub certificate: Option<Vec<u8>>,
    /// HTTP/2 was agreed upon.
    pub http2: bool,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) http: HttpTroubles,
    pub(crate) watch: WatchTrouble,
    pub(crate) watches: Vec<String>,
    pub(crate) bookmarks: u64,
    pub(crate) open: u64,
    pub(crate) authorizations: Vec<Option<String>>,
    pub(crate) traceparents: Vec<Option<String>>,
    pub(crate) peers: Vec<Peer>,
}

pub(crate) struct Shared {
    pub(crate) api: FakeApi,
    pub(crate) state: Mutex<State>,
    pub(crate) tls: Option<TlsAcceptor>,
    /// Ticks when all connections end.
    pub(crate) cut: tokio::sync::watch::Sender<u64>,
}

impl Shared {
    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
