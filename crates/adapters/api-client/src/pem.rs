//! Certificates and keys in PEM: parsed, matched, dated.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::sign::CertifiedKey;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// Why certificates or keys are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PemError {
    /// Nothing of PEM in it.
    #[error("holds no PEM block of type CERTIFICATE")]
    NoCertificate,
    /// A certificate that is none.
    #[error("holds a certificate that cannot be read: {0}")]
    BadCertificate(String),
    /// No key.
    #[error("holds no unencrypted PEM private key")]
    NoKey,
    /// A key that needs a password.
    #[error("holds an encrypted private key, and there is nobody to ask for its password")]
    EncryptedKey,
    /// A key of a kind that is not known.
    #[error("holds a private key that cannot be used: {0}")]
    BadKey(String),
    /// They do not belong together.
    #[error("the private key does not belong to the certificate")]
    Mismatch,
    /// Over.
    #[error("the certificate expired at {0}")]
    Expired(Timestamp),
    /// Not yet.
    #[error("the certificate is not valid before {0}")]
    NotYetValid(Timestamp),
}

/// A client certificate with its chain, and its key.
#[derive(Clone)]
pub struct Identity {
    pub(crate) key: Arc<CertifiedKey>,
    /// First moment of validity of the leaf.
    pub not_before: Timestamp,
    /// Last moment of validity of the leaf.
    pub not_after: Timestamp,
    /// Leaf, then chain, as PEM.
    pub certificate_pem: String,
    /// Private key as PEM.
    pub key_pem: String,
    /// The files (certificate, key) that a kubeconfig names; `None`: it holds them itself.
    pub files: Option<(PathBuf, PathBuf)>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("not_after", &self.not_after).finish_non_exhaustive()
    }
}

impl Identity {
    /// Puts a certificate (leaf first) and its key together.
    ///
    /// # Errors
    /// They cannot be read or do not belong together.
    pub fn from_pem(certificate: &[u8], key_text: &[u8]) -> Result<Self, PemError> {
        let chain = certificates(certificate)?;
        let (not_before, not_after) = validity(&chain[0])?;
        let key = private_key(key_text)?;
        // Not `CertifiedKey::keys_match`: it refuses certificates of X.509 version 1, which servers take.
        let leaf = parse(&chain[0])?;
        if key.public_key().is_some_and(|public| public.as_ref() != leaf.public_key().raw) {
            return Err(PemError::Mismatch);
        }
        let text = |pem: &[u8]| String::from_utf8_lossy(pem).into_owned();
        let (certificate_pem, key_pem) = (text(certificate), text(key_text));
        let certified = CertifiedKey::new(chain, key);
        Ok(Self { key: Arc::new(certified), not_before, not_after, certificate_pem, key_pem, files: None })
    }

    /// Whether it is valid at a time.
    ///
    /// # Errors
    /// It is over, or not yet valid.
    pub fn valid_at(&self, now: Timestamp) -> Result<(), PemError> {
        if now > self.not_after {
            return Err(PemError::Expired(self.not_after));
        }
        if now < self.not_before {
            return Err(PemError::NotYetValid(self.not_before));
        }
        Ok(())
    }
}

/// Checks that a text holds a key that can be used, without a certificate to match.
pub(crate) fn check_key(pem: &[u8]) -> Result<(), PemError> {
    private_key(pem).map(drop)
}

/// All certificates of a text; at least one.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let all = ::tls::certificates(pem).map_err(|e| PemError::BadCertificate(e.to_string()))?;
    for certificate in &all {
        validity(certificate)?;
    }
    if all.is_empty() { Err(PemError::NoCertificate) } else { Ok(all) }
}

/// The authorities of a text.
pub(crate) fn authorities(pem: &[u8]) -> Result<RootCertStore, PemError> {
    ::tls::store(certificates(pem)?).map_err(|e| PemError::BadCertificate(e.to_string()))
}

fn private_key(pem: &[u8]) -> Result<Arc<dyn tokio_rustls::rustls::sign::SigningKey>, PemError> {
    if String::from_utf8_lossy(pem).contains("ENCRYPTED") {
        return Err(PemError::EncryptedKey);
    }
    let key = ::tls::key(pem).map_err(|_| PemError::NoKey)?;
    ring::sign::any_supported_type(&key).map_err(|e| PemError::BadKey(e.to_string()))
}

fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, PemError> {
    X509Certificate::from_der(certificate)
        .map(|(_, parsed)| parsed)
        .map_err(|e| PemError::BadCertificate(e.to_string()))
}

fn validity(certificate: &CertificateDer<'_>) -> Result<(Timestamp, Timestamp), PemError> {
    let parsed = parse(certificate)?;
    let time = |at: x509_parser::time::ASN1Time| Timestamp::from_second(at.timestamp()).unwrap_or(Timestamp::MAX);
    Ok((time(parsed.validity().not_before), time(parsed.validity().not_after)))
}
