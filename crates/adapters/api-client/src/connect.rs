//! One connection to the API server: TCP, perhaps through a proxy, and TLS when the URL says so.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use resolver::Resolver;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tower::Service;

/// How long TCP and TLS may take together.
const CONNECT: Duration = Duration::from_secs(30);
/// Probing of a silent TCP connection: a dead peer is noticed after about a minute.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVE_TRIES: u32 = 3;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The names of servers and proxies.
#[derive(Clone)]
struct Names(Resolver);

impl Service<Name> for Names {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = self.0.clone();
        // The connector knows the port.
        Box::pin(async move { Ok(resolver.places(name.as_str(), 0).await?.into_iter()) })
    }
}

/// Makes connections. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector<Names>,
    tls: Arc<ClientConfig>,
    server_name: Option<Arc<str>>,
    proxy: Option<Uri>,
    environment: Arc<Matcher>,
}

impl Connector {
    pub(crate) fn new(tls: Arc<ClientConfig>, server_name: Option<&str>, proxy: Option<Uri>) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(Names(Resolver::new()));
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE_EVERY));
        tcp.set_keepalive_retries(Some(KEEPALIVE_TRIES));
        let environment = Arc::new(Matcher::from_env());
        Self { tcp, tls, server_name: server_name.map(Arc::from), proxy, environment }
    }

    /// The proxy for a server: that of the cluster, else the environment's; never for this machine itself.
    fn proxy_for(&self, server: &Uri) -> Option<(Uri, Option<hyper::header::HeaderValue>)> {
        let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
        let local = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if let Some(proxy) = &self.proxy {
            return Some((proxy.clone(), None));
        }
        let found = self.environment.intercept(server).filter(|_| !local)?;
        Some((found.uri().clone(), found.basic_auth().cloned()))
    }

    async fn connect(mut self, server: Uri) -> Result<Wire, BoxError> {
        let tcp = match self.proxy_for(&server) {
            None => self.tcp.call(server.clone()).await?.into_inner(),
            Some((proxy, auth)) => {
                let mut tunnel = Tunnel::new(proxy, self.tcp);
                if let Some(auth) = auth {
                    tunnel = tunnel.with_auth(auth);
                }
                tunnel.call(server.clone()).await?.into_inner()
            }
        };
        if server.scheme_str() != Some("https") {
            return Ok(Wire::Plain(TokioIo::new(tcp)));
        }
        let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
        let name = ServerName::try_from(self.server_name.as_deref().unwrap_or(host).to_owned())?;
        let tls = TlsConnector::from(self.tls).connect(name, tcp).await?;
        Ok(Wire::Tls(Box::new(TokioIo::new(tls))))
    }
}

impl Service<Uri> for Connector {
    type Response = Wire;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Wire, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let connect = self.clone().connect(server);
        Box::pin(async move { tokio::time::timeout(CONNECT, connect).await.map_err(|_| "connecting took too long")? })
    }
}

/// A connection with or without TLS.
pub(crate) enum Wire {
    Plain(TokioIo<TcpStream>),
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        match self {
            Self::Tls(tls) if tls.inner().get_ref().1.alpn_protocol() == Some(b"h2") => {
                Connected::new().negotiated_h2()
            }
            _ => Connected::new(),
        }
    }
}

impl Read for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_read(cx, buf),
            Self::Tls(io) => Pin::new(&mut **io).poll_read(cx, buf),
        }
    }
}

impl Write for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write(cx, buf),
            Self::Tls(io) => Pin::new(&mut **io).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_flush(cx),
            Self::Tls(io) => Pin::new(&mut **io).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Self::Tls(io) => Pin::new(&mut **io).poll_shutdown(cx),
        }
    }
}
