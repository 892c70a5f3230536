//! Keys, requests and the self-signed pair.

use std::net::IpAddr;
use std::time::Duration;

use cert_rotation::Template;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, SanType, date_time_ymd,
};

/// Life of the self-signed pair.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
/// Clocks of others may be late by this much.
const SLACK_S: i64 = 3600;

/// A new ECDSA P-256 key, as PKCS#8 PEM.
pub(crate) fn new_key() -> Result<String, rcgen::Error> {
    Ok(KeyPair::generate()?.serialize_pem())
}

/// SubjectPublicKeyInfo (DER) of a private key; `None` for kinds of keys that only TLS can read.
pub(crate) fn public_key(key_pem: &str) -> Option<Vec<u8>> {
    KeyPair::from_pem(key_pem).ok().map(|key| key.subject_public_key_info())
}

/// The request for a certificate, as PEM.
pub(crate) fn request(key_pem: &str, template: &Template) -> Result<String, rcgen::Error> {
    let key = KeyPair::from_pem(key_pem)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for organization in &template.organizations {
        params.distinguished_name.push(DnType::OrganizationName, organization.as_str());
    }
    params.distinguished_name.push(DnType::CommonName, template.common_name.as_str());
    for name in &template.dns_names {
        params.subject_alt_names.push(SanType::DnsName(name.as_str().try_into()?));
    }
    params.subject_alt_names.extend(template.ip_addresses.iter().map(|ip| SanType::IpAddress(*ip)));
    params.serialize_request(&key)?.pem()
}

fn named(common_name: String, now_s: i64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    let start = u64::try_from(now_s.saturating_sub(SLACK_S)).unwrap_or(0);
    params.not_before = date_time_ymd(1970, 1, 1) + Duration::from_secs(start);
    params.not_after = params.not_before + YEAR;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params
}

/// A certificate for `hostname`, good for a year, with the authority that was made for it alone. Returns chain and key.
pub(crate) fn self_signed(hostname: &str, now_s: i64) -> Result<(String, String), rcgen::Error> {
    let mut authority = named(format!("{hostname}-ca@{now_s}"), now_s);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages.push(KeyUsagePurpose::KeyCertSign);
    let authority_key = KeyPair::generate()?;
    let authority_certificate = authority.self_signed(&authority_key)?;
    let mut leaf = named(format!("{hostname}@{now_s}"), now_s);
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.subject_alt_names = vec![match hostname.parse::<IpAddr>() {
        Ok(ip) => SanType::IpAddress(ip),
        Err(_) => SanType::DnsName(hostname.try_into()?),
    }];
    let key = KeyPair::generate()?;
    let certificate = leaf.signed_by(&key, &Issuer::new(authority, authority_key))?;
    Ok((format!("{}{}", certificate.pem(), authority_certificate.pem()), key.serialize_pem()))
}
