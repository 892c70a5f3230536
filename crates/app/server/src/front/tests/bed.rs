//! A server with everything around it: authorities, an API server that reviews, clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, Version};
use contract::Wiring;
use contract::board::ValueReader;
use contract::certificates::{CertificateView, KeyPair};
use fakes::FakeApi;
use http_body_util::BodyExt;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, SupportedProtocolVersion, version};

use super::pki::{Authority, Issued, Wanted};
use crate::front::{Authn, Authz, Caller, Counted, Counts, Front, Limits, Tls, open};
use crate::listener::Accepting;

pub(super) struct Bed {
    pub(super) address: SocketAddr,
    pub(super) counts: Arc<Counts>,
    pub(super) api: FakeApi,
    pub(super) authority: Authority,
    pub(super) wiring: Wiring,
    pub(super) handled: Arc<AtomicUsize>,
    pub(super) dir: tempfile::TempDir,
    pub(super) stop: Option<oneshot::Sender<()>>,
    pub(super) server: JoinHandle<()>,
}

pub(super) fn pair(issued: &Issued) -> Arc<KeyPair> {
    Arc::new(KeyPair {
        certificate_pem: issued.certificate.clone(),
        key_pem: issued.key.clone(),
        not_before: model::Timestamp::ZERO,
        not_after: model::Timestamp::from_secs(4_000_000_000),
    })
}

pub(super) fn front(api: &FakeApi, certificates: ValueReader<CertificateView>) -> Front {
    Front {
        address: "127.0.0.1".parse().unwrap(),
        port: 0,
        node_name: "n1".to_owned(),
        tls: Tls::default(),
        certificates,
        authn: Authn { client_ca_file: None, webhook: true, cache_ttl: Duration::from_secs(120), anonymous: false },
        authz: Authz::Webhook { allowed_ttl: Duration::from_secs(300), denied_ttl: Duration::from_secs(30) },
        fine_grained: true,
        api: Some(Arc::new(api.clone())),
        limits: Limits { look: Duration::from_millis(10), grace: Duration::from_secs(5), ..Limits::default() },
        accepting: Accepting::default(),
    }
}

/// An API server that lets everybody do everything.
pub(super) fn api() -> FakeApi {
    let api = FakeApi::new();
    api.allow(&["*"]);
    api
}

impl Bed {
    pub(super) async fn new() -> Self {
        Self::with(|_| {}, Router::new()).await
    }

    /// Settings to change; routes besides the echo that answers everything else.
    pub(super) async fn with(change: impl FnOnce(&mut Front), routes: Router) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new("clients");
        let ca_file = dir.path().join("ca.crt");
        std::fs::write(&ca_file, &authority.pem).unwrap();
        let serving = Some(pair(&authority.server()));
        let wiring = Wiring::default();
        wiring.set(CertificateView { serving, ..CertificateView::default() });
        let api = api();
        let mut front = front(&api, wiring.value());
        front.authn.client_ca_file = Some(ca_file);
        change(&mut front);
        let handled = Arc::new(AtomicUsize::new(0));
        let count = handled.clone();
        let router = routes.fallback(move |request: Request<Body>| {
            count.fetch_add(1, Ordering::SeqCst);
            echo(request)
        });
        let listening = open(front).await.unwrap();
        let (address, counts) = (listening.address().unwrap(), listening.counts());
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(listening.serve(router, async move {
            // A bed that is dropped stops as well.
            let _ = stopped.await;
        }));
        Self { address, counts, api, authority, wiring, handled, dir, stop: Some(stop), server }
    }

    pub(super) fn counted(&self) -> Counted {
        self.counts.read()
    }

    pub(super) fn ca_file(&self) -> std::path::PathBuf {
        self.dir.path().join("ca.crt")
    }

    /// A good certificate.
    pub(super) fn alice(&self) -> Issued {
        self.authority.client(Wanted::default())
    }

    pub(super) async fn tls(&self, alpn: &[u8], shown: Option<&Issued>) -> std::io::Result<TlsStream<TcpStream>> {
        connect(self.address, &self.authority.pem, alpn, shown, &[&version::TLS13, &version::TLS12]).await
    }

    pub(super) async fn h1(&self, shown: Option<&Issued>) -> Client {
        Client::h1(self.tls(b"http/1.1", shown).await.unwrap()).await
    }

    /// Somebody without a certificate at another address of this machine.
    pub(super) async fn h1_from(&self, origin: [u8; 4]) -> Client {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((origin, 0).into()).unwrap();
        let stream = socket.connect(self.address).await.unwrap();
        let versions = [&version::TLS13];
        Client::h1(greet(stream, &self.authority.pem, b"http/1.1", None, &versions).await.unwrap()).await
    }

    pub(super) async fn h2(&self, shown: Option<&Issued>) -> Client {
        Client::h2(self.tls(b"h2", shown).await.unwrap()).await
    }
}

/// Tells what came through.
async fn echo(request: Request<Body>) -> String {
    let user = request.extensions().get::<Caller>().map(|u| u.name.clone()).unwrap_or_default();
    let header = |name: &str| {
        request
            .headers()
            .get(name)
            .and_then(|v| v.to_str().ok())
            .map(|v| format!(" {name}={}", v.trim()))
            .unwrap_or_default()
    };
    let (auth, protocols) = (header("authorization"), header("sec-websocket-protocol"));
    format!("{user} {}{auth}{protocols}", request.uri().path())
}

pub(super) async fn connect(
    address: SocketAddr,
    authority: &str,
    alpn: &[u8],
    shown: Option<&Issued>,
    versions: &[&'static SupportedProtocolVersion],
) -> std::io::Result<TlsStream<TcpStream>> {
    greet(TcpStream::connect(address).await?, authority, alpn, shown, versions).await
}

async fn greet(
    stream: TcpStream,
    authority: &str,
    alpn: &[u8],
    shown: Option<&Issued>,
    versions: &[&'static SupportedProtocolVersion],
) -> std::io::Result<TlsStream<TcpStream>> {
    let roots = ::tls::authorities(authority.as_bytes()).unwrap();
    let builder = ClientConfig::builder_with_provider(::tls::provider())
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match shown {
        None => builder.with_no_client_auth(),
        Some(issued) => {
            let chain = ::tls::certificates(issued.certificate.as_bytes()).unwrap();
            let key = ::tls::key(issued.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("node").unwrap(), stream).await
}

enum Sender {
    One(http1::SendRequest<Body>),
    Two(http2::SendRequest<Body>),
}

pub(super) struct Client(Sender);

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Client {
    pub(super) async fn h1(stream: TlsStream<TcpStream>) -> Self {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection.with_upgrades());
        Self(Sender::One(sender))
    }

    pub(super) async fn h2(stream: TlsStream<TcpStream>) -> Self {
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(Sender::Two(sender))
    }

    pub(super) async fn send(&mut self, mut request: Request<Body>) -> hyper::Result<Answer> {
        let response = match &mut self.0 {
            Sender::One(sender) => {
                request.headers_mut().insert("host", "node".parse().unwrap());
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Two(sender) => {
                *request.version_mut() = Version::HTTP_2;
                *request.uri_mut() = format!("https://node{}", request.uri()).parse().unwrap();
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        let (head, body) = response.into_parts();
        let body = String::from_utf8(body.collect().await?.to_bytes().to_vec()).unwrap();
        Ok(Answer { code: head.status.as_u16(), headers: head.headers, body })
    }

    pub(super) async fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    pub(super) async fn get(&mut self, path: &str) -> (u16, String) {
        let answer = self.ask("GET", path, &[]).await;
        (answer.code, answer.body)
    }

    pub(super) async fn token(&mut self, path: &str, token: &str) -> (u16, String) {
        let answer = self.ask("GET", path, &[("authorization", &format!("Bearer {token}"))]).await;
        (answer.code, answer.body)
    }
}
