//! The listening server, its connections, and the switches of the test.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use fakes::FakeApi;
use fakes::api::Matching;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::answer;
use crate::pki::Issued;
use crate::state::{Peer, Shared, State};
use crate::trouble::{HttpTrouble, WatchTrouble};

/// How the server speaks TLS.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// What it shows.
    pub shown: Issued,
    /// Clients must show a certificate of this authority (PEM); `None`: nobody is asked.
    pub clients: Option<String>,
}

/// The server; it ends, with its connections, when it is dropped.
pub struct FakeApiServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

impl Drop for FakeApiServer {
    fn drop(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
        }
        self.cut();
    }
}

impl FakeApiServer {
    /// Without TLS, on a free port of 127.0.0.1.
    pub async fn plain(api: FakeApi) -> Self {
        Self::start(api, None).await
    }

    /// With TLS, HTTP/2 and 1.1.
    pub async fn tls(api: FakeApi, tls: &ServerTls) -> Self {
        Self::start(api, Some(acceptor(tls))).await
    }

    async fn start(api: FakeApi, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let (cut, _) = tokio::sync::watch::channel(0);
        let shared = Arc::new(Shared { api, state: Mutex::new(State::default()), tls, cut });
        let accepting = Some(tokio::spawn(accept(listener, shared.clone())));
        Self { shared, address, accepting }
    }

    /// `http://127.0.0.1:4711` or `https://...`.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.shared.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The state behind it.
    #[must_use]
    pub fn api(&self) -> &FakeApi {
        &self.shared.api
    }

    /// Trouble for the next `times` requests that match.
    pub fn trouble(&self, matching: Matching, trouble: HttpTrouble, times: u32) {
        self.shared.with(|s| s.http.add(matching, trouble, times));
    }

    /// Changes what happens to watches, those that are open included.
    pub fn watches(&self, change: impl FnOnce(&mut WatchTrouble)) {
        self.shared.with(|s| change(&mut s.watch));
        // Open watches look again.
        self.shared.api.store(|_| ());
    }

    /// How many watches were begun.
    #[must_use]
    pub fn watches_begun(&self) -> u64 {
        self.shared.with(|s| s.watches.len() as u64)
    }

    /// Versions from which watches were begun, in order.
    #[must_use]
    pub fn watch_versions(&self) -> Vec<String> {
        self.shared.with(|s| s.watches.clone())
    }

    /// Bookmarks that told of time going on, of all watches.
    #[must_use]
    pub fn bookmarks(&self) -> u64 {
        self.shared.with(|s| s.bookmarks)
    }

    /// Watches that are open now.
    #[must_use]
    pub fn watches_open(&self) -> u64 {
        self.shared.with(|s| s.open)
    }

    /// `Authorization` headers of all requests, in order.
    #[must_use]
    pub fn authorizations(&self) -> Vec<Option<String>> {
        self.shared.with(|s| s.authorizations.clone())
    }

    /// `traceparent` headers of all requests, in order.
    #[must_use]
    pub fn traceparents(&self) -> Vec<Option<String>> {
        self.shared.with(|s| s.traceparents.clone())
    }

    /// All connections that were accepted, in order.
    #[must_use]
    pub fn peers(&self) -> Vec<Peer> {
        self.shared.with(|s| s.peers.clone())
    }

    /// Ends all connections at once.
    pub fn cut(&self) {
        self.shared.cut.send_modify(|n| *n += 1);
    }

    /// Stops listening and ends all connections: the machine is gone.
    pub async fn unplug(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            // Its end is the end of the socket; that it was aborted is known.
            let _ = accepting.await;
        }
        self.cut();
    }

    /// Listens again at the same address.
    ///
    /// # Panics
    /// Somebody else took the port.
    pub async fn plug(&mut self) {
        if self.accepting.is_some() {
            return;
        }
        let listener = TcpListener::bind(self.address).await.expect("nobody else took the port");
        self.accepting = Some(tokio::spawn(accept(listener, self.shared.clone())));
    }
}

fn acceptor(tls: &ServerTls) -> TlsAcceptor {
    let builder = ServerConfig::builder_with_provider(::tls::provider()).with_safe_default_protocol_versions();
    let builder = builder.expect("ring speaks all versions");
    let builder = match &tls.clients {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let verifier = ::tls::authorities(pem.as_bytes()).and_then(::tls::clients_of);
            builder.with_client_cert_verifier(verifier.expect("an authority"))
        }
    };
    let chain = ::tls::certificates(tls.shown.certificate.as_bytes()).expect("PEM of a test");
    let key = ::tls::key(tls.shown.key.as_bytes()).expect("a key of a test");
    let mut config = builder.with_single_cert(chain, key).expect("a certificate and its key");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection(stream, shared.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection until it ends or is cut.
async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let mut cut = shared.cut.subscribe();
    let served = async {
        match shared.tls.clone() {
            None => {
                shared.with(|s| s.peers.push(Peer { certificate: None, http2: false }));
                serve(stream, shared.clone()).await;
            }
            Some(tls) => {
                // Who fails the handshake is no peer.
                let Ok(stream) = tls.accept(stream).await else { return };
                let facts = stream.get_ref().1;
                let certificate = facts.peer_certificates().and_then(|c| c.first()).map(|c| c.to_vec());
                let http2 = facts.alpn_protocol() == Some(b"h2");
                shared.with(|s| s.peers.push(Peer { certificate, http2 }));
                serve(stream, shared.clone()).await;
            }
        }
    };
    tokio::select! {
        () = served => {}
        _ = cut.changed() => {}
    }
}

async fn serve<S>(stream: S, shared: Arc<Shared>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let shared = shared.clone();
        answer::answer(shared, request)
    });
    // A connection that ends with an error is what the test asked for.
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // The least that API servers are known to allow.
    builder.http2().max_concurrent_streams(100);
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}
