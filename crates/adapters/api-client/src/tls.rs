//! TLS towards the API server: whom it believes and what it shows, which may change while connections live.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::error::BuildError;
use crate::kubeconfig::Trust;
use crate::pem;

/// Where distributions keep the authorities of the machine, in the order in which they are tried.
const SYSTEM_AUTHORITIES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

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
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| BuildError::Tls { message: e.to_string() })?
        .dangerous();
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Anyone => Arc::new(Anyone(provider)),
        Trust::Authorities(pem) => verifier(pem::authorities(pem)?, provider)?,
        Trust::System => match system_authorities() {
            Some(roots) => verifier(roots, provider)?,
            None => return Err(BuildError::NoAuthorities),
        },
    };
    let mut config = builder.with_custom_certificate_verifier(verifier).with_client_cert_resolver(shown);
    // A resumed session keeps the client certificate that it began with: after a rotation the server would see the old one.
    config.resumption = Resumption::disabled();
    config.alpn_protocols = if http2 { vec![b"h2".to_vec(), b"http/1.1".to_vec()] } else { vec![b"http/1.1".to_vec()] };
    Ok(config)
}

fn verifier(roots: RootCertStore, provider: Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, BuildError> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|e| BuildError::Tls { message: e.to_string() })
}

/// The first bundle that holds anything. Single certificates in it that are not understood are left out.
fn system_authorities() -> Option<RootCertStore> {
    let named = std::env::var_os("SSL_CERT_FILE").map(std::path::PathBuf::from);
    let places = named.into_iter().chain(SYSTEM_AUTHORITIES.iter().map(std::path::PathBuf::from));
    for place in places {
        let Ok(text) = std::fs::read(&place) else { continue };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(pem::lenient(&text));
        if !roots.is_empty() {
            return Some(roots);
        }
    }
    None
}

/// `insecure-skip-tls-verify`: signatures are checked, the certificate is not.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let schemes = &self.0.signature_verification_algorithms;
        tokio_rustls::rustls::crypto::verify_tls12_signature(message, cert, dss, schemes)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let schemes = &self.0.signature_verification_algorithms;
        tokio_rustls::rustls::crypto::verify_tls13_signature(message, cert, dss, schemes)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
