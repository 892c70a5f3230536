//! Connections to hosts.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use model::url::Url;
use resolver::Resolver;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::endpoint::TlsFiles;
use crate::error::Failure;

/// Bytes of a connection that wait to be taken, a head among them. Hyper's own bound is three times that, and layers come side by side.
const BUFFER: usize = 128 << 10;

/// What requests are sent through.
pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// Connects within a deadline. `config`: for TLS.
pub(crate) async fn connect(
    resolver: &Resolver,
    url: &Url,
    config: Option<Arc<ClientConfig>>,
    deadline: Duration,
) -> Result<Sender, Failure> {
    let stalled = Failure::Stalled { after: deadline, during: "connecting" };
    timeout(deadline, dial(resolver, url, config)).await.map_err(|_| stalled)?
}

async fn dial(resolver: &Resolver, url: &Url, config: Option<Arc<ClientConfig>>) -> Result<Sender, Failure> {
    let places = resolver.places(&url.host, url.port()).await.map_err(Failure::Connect)?;
    let refused =
        |e: std::io::Error| Failure::Connect(format!("{}: {e}", model::url::authority(&url.host, url.port())));
    let stream = TcpStream::connect(&*places).await.map_err(refused)?;
    stream.set_nodelay(true).map_err(refused)?;
    let Some(config) = config else { return converse(stream).await };
    let name = ServerName::try_from(url.host.clone());
    let name = name.map_err(|_| Failure::Tls(format!("{} is no name of a server", url.host)))?;
    let stream = TlsConnector::from(config).connect(name, stream).await;
    converse(stream.map_err(|e| Failure::Tls(e.to_string()))?).await
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Sender, Failure> {
    let shaken = http1::Builder::new().max_buf_size(BUFFER).handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(|e| Failure::Broken(e.to_string()))?;
    // Ends with its sender, or when the host closes it; what went wrong the sender is told, too.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

/// Settings of TLS; reads files. `shows`: the host may see this side's certificate.
pub(crate) fn tls_config(files: &TlsFiles, shows: bool) -> Result<ClientConfig, Failure> {
    let trust = match files.skip_verify {
        true => tls::Trust::Anyone,
        false => tls::Trust::Authorities(authorities(files)?),
    };
    let builder = tls::client(trust);
    let mut config = match files.client.as_ref().filter(|_| shows) {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let key_file = key.as_ref().unwrap_or(certificate);
            let wrong = |path: &Path| {
                let path = path.to_owned();
                move |e: tls::PemError| Failure::Configuration(format!("{path:?}: {e}"))
            };
            let certificates = tls::certificates(&read(certificate)?).map_err(wrong(certificate))?;
            let key = tls::key(&read(key_file)?).map_err(wrong(key_file))?;
            let shown = builder.with_client_auth_cert(certificates, key);
            shown.map_err(|e| Failure::Configuration(format!("{certificate:?}: {e}")))?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn authorities(files: &TlsFiles) -> Result<RootCertStore, Failure> {
    let mut roots = tls::system_authorities().unwrap_or_else(RootCertStore::empty);
    for path in &files.ca {
        let own = tls::authorities(&read(path)?).map_err(|e| Failure::Configuration(format!("{path:?}: {e}")))?;
        if own.is_empty() {
            return Err(Failure::Configuration(format!("{path:?} has no certificate")));
        }
        roots.extend(own.roots);
    }
    match roots.is_empty() {
        true => Err(Failure::Configuration(
            "this machine has no certificate authorities: install ca-certificates".to_owned(),
        )),
        false => Ok(roots),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|e| Failure::Configuration(format!("cannot read {path:?}: {e}")))
}
