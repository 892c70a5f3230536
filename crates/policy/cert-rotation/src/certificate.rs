//! What a certificate says, read from its PEM.

use std::collections::BTreeSet;
use std::net::IpAddr;

use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;
use x509_parser::prelude::X509Certificate;

/// The parts of a certificate that rotation looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Start of its life, seconds since the epoch.
    pub not_before_s: i64,
    /// End of its life, seconds since the epoch.
    pub not_after_s: i64,
    /// Common name of the subject; empty when there is none.
    pub common_name: String,
    /// Organizations of the subject.
    pub organizations: BTreeSet<String>,
    /// DNS names it is good for.
    pub dns_names: BTreeSet<String>,
    /// Addresses it is good for.
    pub ip_addresses: BTreeSet<IpAddr>,
    /// SubjectPublicKeyInfo, DER.
    pub public_key: Vec<u8>,
}

impl Facts {
    /// Whether its life is over.
    #[must_use]
    pub const fn is_expired(&self, now_s: i64) -> bool {
        now_s > self.not_after_s
    }
}

/// Why a PEM text cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PemError {
    /// No certificate in it.
    #[error("no CERTIFICATE block")]
    NoCertificate,
    /// No private key in it.
    #[error("no PRIVATE KEY block")]
    NoKey,
    /// A block begins and never ends.
    #[error("block {0} has no end")]
    Open(String),
    /// The first certificate is damaged.
    #[error("damaged certificate: {0}")]
    Damaged(String),
}

/// Certificates and key of one text, apart.
#[derive(Clone, PartialEq, Eq)]
pub struct Parts {
    /// Leaf, then chain; empty when there is none.
    pub certificates: String,
    /// The first private key; empty when there is none.
    pub key: String,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("certificates", &self.certificates).finish_non_exhaustive()
    }
}

/// Splits a PEM text into certificates and key; other blocks and text between blocks go.
///
/// # Errors
/// A block without end.
pub fn split(text: &str) -> Result<Parts, PemError> {
    let mut parts = Parts { certificates: String::new(), key: String::new() };
    let mut rest = text;
    while let Some(begin) = rest.find("-----BEGIN ") {
        let block = &rest[begin..];
        let label = block["-----BEGIN ".len()..].split("-----").next().unwrap_or_default();
        let end = format!("-----END {label}-----");
        let Some(at) = block.find(&end) else { return Err(PemError::Open(label.to_owned())) };
        let whole = &block[..at + end.len()];
        if label == "CERTIFICATE" {
            parts.certificates.push_str(whole);
            parts.certificates.push('\n');
        } else if label.ends_with("PRIVATE KEY") && parts.key.is_empty() {
            parts.key = format!("{whole}\n");
        }
        rest = &block[at + end.len()..];
    }
    Ok(parts)
}

/// Splits a text that must hold both.
///
/// # Errors
/// One of them is missing, or a block has no end.
pub fn split_pair(text: &str) -> Result<Parts, PemError> {
    let parts = split(text)?;
    if parts.certificates.is_empty() {
        return Err(PemError::NoCertificate);
    }
    if parts.key.is_empty() {
        return Err(PemError::NoKey);
    }
    Ok(parts)
}

/// Reads the first certificate of a PEM text.
///
/// # Errors
/// There is none, or it is damaged.
pub fn read(certificates: &str) -> Result<Facts, PemError> {
    let damaged = |e: &dyn std::fmt::Display| PemError::Damaged(e.to_string());
    for pem in Pem::iter_from_buffer(certificates.as_bytes()) {
        let pem = pem.map_err(|e| damaged(&e))?;
        if pem.label == "CERTIFICATE" {
            let certificate = pem.parse_x509().map_err(|e| damaged(&e))?;
            return Ok(facts(&certificate));
        }
    }
    Err(PemError::NoCertificate)
}

fn facts(certificate: &X509Certificate<'_>) -> Facts {
    let subject = certificate.subject();
    let mut facts = Facts {
        not_before_s: certificate.validity().not_before.timestamp(),
        not_after_s: certificate.validity().not_after.timestamp(),
        common_name: subject.iter_common_name().find_map(|c| c.as_str().ok()).unwrap_or_default().to_owned(),
        organizations: subject.iter_organization().filter_map(|o| o.as_str().ok()).map(str::to_owned).collect(),
        dns_names: BTreeSet::new(),
        ip_addresses: BTreeSet::new(),
        public_key: certificate.public_key().raw.to_vec(),
    };
    if let Ok(Some(names)) = certificate.subject_alternative_name() {
        for name in &names.value.general_names {
            match name {
                GeneralName::DNSName(name) => {
                    facts.dns_names.insert((*name).to_owned());
                }
                GeneralName::IPAddress(bytes) => facts.ip_addresses.extend(address(bytes)),
                _ => {}
            }
        }
    }
    facts
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    four.or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
}
