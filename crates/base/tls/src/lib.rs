//! TLS as everybody here sets it up: rustls on ring, the machine's authorities, what PEM holds.
//!
//! Owns no connection and decides nothing: who is believed and what is shown is said by its callers.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::client::WantsClientCert;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use tokio_rustls::rustls::server::{WebPkiClientVerifier, danger::ClientCertVerifier};
use tokio_rustls::rustls::{ClientConfig, ConfigBuilder, Error, RootCertStore};

mod anyone;

#[cfg(test)]
mod tests;

/// Where distributions keep the authorities of the machine, in the order in which they are tried.
const SYSTEM_AUTHORITIES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Why PEM cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// It is none.
    #[error(transparent)]
    Pem(#[from] pem::Error),
    /// A certificate in it is no authority's, or authorities cannot be used.
    #[error("{0}")]
    Authority(String),
}

/// Which servers a client believes.
#[derive(Debug)]
pub enum Trust {
    /// Those with a certificate of these authorities.
    Authorities(RootCertStore),
    /// Any, whatever it shows.
    Anyone,
}

/// Ring.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Settings of a client in the library's default versions, up to what it shows.
///
/// # Panics
/// Never: ring speaks those versions.
#[must_use]
pub fn client(trust: Trust) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring speaks the default versions");
    match trust {
        Trust::Authorities(roots) => builder.with_root_certificates(roots),
        Trust::Anyone => builder.dangerous().with_custom_certificate_verifier(Arc::new(anyone::Anyone(provider))),
    }
}

/// Believes clients with a certificate of these authorities.
///
/// # Errors
/// There is none.
pub fn clients_of(authorities: RootCertStore) -> Result<Arc<dyn ClientCertVerifier>, PemError> {
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider());
    builder.build().map_err(|e| PemError::Authority(e.to_string()))
}

/// All certificates of a text, in their order; perhaps none.
///
/// # Errors
/// One cannot be read.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    Ok(CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?)
}

/// The first private key of a text.
///
/// # Errors
/// There is none that is not encrypted.
pub fn key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, PemError> {
    Ok(PrivateKeyDer::from_pem_slice(pem)?)
}

/// All authorities of a text; perhaps none.
///
/// # Errors
/// One cannot be read or is no authority.
pub fn authorities(pem: &[u8]) -> Result<RootCertStore, PemError> {
    store(certificates(pem)?)
}

/// These, as authorities.
///
/// # Errors
/// One is no authority.
pub fn store(certificates: Vec<CertificateDer<'static>>) -> Result<RootCertStore, PemError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(|e: Error| PemError::Authority(e.to_string()))?;
    }
    Ok(roots)
}

/// The authorities of the machine: `SSL_CERT_FILE`, else the first bundle of a distribution that holds anything; what is not
/// understood in it is left out. Reads files: not for a thread that must not block.
#[must_use]
pub fn system_authorities() -> Option<RootCertStore> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    named.into_iter().chain(SYSTEM_AUTHORITIES.iter().map(PathBuf::from)).find_map(|bundle| readable(&bundle))
}

fn readable(bundle: &Path) -> Option<RootCertStore> {
    let text = std::fs::read(bundle).ok()?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&text).filter_map(Result::ok));
    (!roots.is_empty()).then_some(roots)
}
