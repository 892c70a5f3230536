//! Connections: dial, wrap in TLS without looking at the certificate.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use ports::hook::HTTP_TO_HTTPS;
use resolver::{Resolver, io_text};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::{TlsConnector, rustls};

/// Makes connections; the configuration of TLS is built at the first that needs it.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) resolver: Resolver,
    tls: Arc<OnceLock<TlsConnector>>,
}

fn connector() -> TlsConnector {
    let mut config = tls::client(tls::Trust::Anyone).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Each attempt is a fresh handshake, as a kubelet's is.
    config.resumption = Resumption::disabled();
    TlsConnector::from(Arc::new(config))
}

impl Connector {
    pub(crate) fn new(resolver: Resolver) -> Self {
        Connector { resolver, tls: Arc::default() }
    }

    /// Resolves and connects.
    pub(crate) async fn dial(&self, host: &str, port: u16) -> Result<TcpStream, String> {
        connect(self.resolver.places(host, port).await.map_err(|why| format!("dial tcp: {why}"))?).await
    }

    pub(crate) async fn wrap(&self, host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| format!("tls: invalid server name {host:?}"))?;
        self.tls.get_or_init(connector).connect(name, stream).await.map_err(|e| match e.get_ref() {
            Some(inner) if is_no_tls(inner) => HTTP_TO_HTTPS.to_owned(),
            Some(inner) => format!("tls: {inner}"),
            None => io_text(&e),
        })
    }
}

/// The first bytes of the peer are no record of TLS: it speaks HTTP, as good as always.
fn is_no_tls(e: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let e = e.downcast_ref::<rustls::Error>();
    matches!(e, Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)))
}

/// Connects to the first place that answers. The error is that of the first and reads as Go's.
pub(crate) async fn connect(places: Vec<SocketAddr>) -> Result<TcpStream, String> {
    let mut first = None;
    for one in places {
        match TcpStream::connect(one).await {
            Ok(stream) => {
                // Without this a request and its body may wait for each other; failing to set it costs time only.
                let _slower = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(e) => first = first.or_else(|| Some(format!("dial tcp {one}: connect: {}", io_text(&e)))),
        }
    }
    Err(first.expect("a look-up without an address is an error"))
}
