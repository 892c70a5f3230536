//! Connections: resolve, dial, wrap in TLS without looking at the certificate.

use std::io;
use std::sync::{Arc, OnceLock};

use ports::hook::HTTP_TO_HTTPS;
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::{TlsConnector, rustls};

/// Makes TLS connections; the configuration is built at the first one.
#[derive(Clone, Default)]
pub(crate) struct Connector(Arc<OnceLock<TlsConnector>>);

fn connector() -> TlsConnector {
    let mut config = tls::client(tls::Trust::Anyone).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Each attempt is a fresh handshake, as a kubelet's is.
    config.resumption = Resumption::disabled();
    TlsConnector::from(Arc::new(config))
}

impl Connector {
    pub(crate) async fn wrap(&self, host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| format!("tls: invalid server name {host:?}"))?;
        self.0.get_or_init(connector).connect(name, stream).await.map_err(|e| match e.get_ref() {
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

/// Connects; tries each address that the host has. The error reads as Go's.
pub(crate) async fn dial(host: &str, port: u16) -> Result<TcpStream, String> {
    let addresses = lookup_host((host, port)).await.map_err(|e| format!("dial tcp: lookup {host}: {}", io_text(&e)))?;
    let mut last = format!("dial tcp: lookup {host}: no such host");
    for one in addresses {
        match TcpStream::connect(one).await {
            Ok(stream) => {
                // Without this a request and its body may wait for each other; failing to set it costs time only.
                let _slower = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(e) => last = format!("dial tcp {one}: connect: {}", io_text(&e)),
        }
    }
    Err(last)
}

/// The system's words without Rust's `(os error N)`, in lower case as Go has them.
pub(crate) fn io_text(e: &io::Error) -> String {
    let text = e.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
