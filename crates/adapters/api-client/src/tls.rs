//! TLS towards the API server: whom it believes and what it shows, which may change while connections live.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tokio_rustls::rustls::client::{ResolvesClientCert, Resumption};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{ClientConfig, SignatureScheme};

use crate::error::BuildError;
use crate::kubeconfig::Trust;
use crate::pem;

/// What is shown to the server; the next handshake takes what stands here then.
#[derive(Debug, Default)]
pub(crate) struct Shown(ArcSwapOption<CertifiedKey>);

impl Shown {
    pub(crate) fn set(&self, key: Option<Arc<CertifiedKey>>) {
        self.0.store(key);
    }
}

impl ResolvesClientCert for Shown {
    fn resolve(&self, _hints: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.load_full()
    }

    fn has_certs(&self) -> bool {
        self.0.load().is_some()
    }
}

/// Settings of all connections of a client.
pub(crate) fn config(trust: &Trust, shown: Arc<Shown>, http2: bool) -> Result<ClientConfig, BuildError> {
    let trust = match trust {
        Trust::Anyone => ::tls::Trust::Anyone,
        Trust::Authorities(pem) => ::tls::Trust::Authorities(pem::authorities(pem)?),
        Trust::System => ::tls::Trust::Authorities(::tls::system_authorities().ok_or(BuildError::NoAuthorities)?),
    };
    let mut config = ::tls::client(trust).with_client_cert_resolver(shown);
    // A resumed session keeps the client certificate that it began with: after a rotation the server would see the old one.
    config.resumption = Resumption::disabled();
    config.alpn_protocols = if http2 { vec![b"h2".to_vec(), b"http/1.1".to_vec()] } else { vec![b"http/1.1".to_vec()] };
    Ok(config)
}
