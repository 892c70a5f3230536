//! TLS towards servers that the machine's authorities vouch for.

use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Where distributions keep the authorities of the machine.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

pub(crate) async fn wrap(host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
    let named = std::env::var_os("SSL_CERT_FILE");
    let roots = tokio::task::spawn_blocking(move || {
        let places = named.iter().map(Path::new).chain(BUNDLES.iter().map(Path::new));
        places.filter_map(read).next()
    });
    let roots = roots.await.map_err(|e| e.to_string())?.ok_or("this machine has no certificate authorities")?;
    let name = ServerName::try_from(host.to_owned()).map_err(|_| format!("{host} is no name of a server"))?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|e| e.to_string())
}

/// A bundle that holds anything; what is not understood in it is left out.
fn read(bundle: &Path) -> Option<RootCertStore> {
    let text = std::fs::read(bundle).ok()?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&text).flatten());
    (!roots.is_empty()).then_some(roots)
}
