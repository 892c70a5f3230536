//! Certificates made by another library, read back.

use rcgen::{CertificateParams, DnType, KeyPair, PublicKeyData, SanType, date_time_ymd};

use crate::certificate::{PemError, read, split, split_pair};

fn made() -> (String, String, Vec<u8>) {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, "system:node:n1");
    params.subject_alt_names = vec![
        SanType::DnsName("n1".try_into().unwrap()),
        SanType::IpAddress("10.0.0.1".parse().unwrap()),
        SanType::IpAddress("2001:db8::1".parse().unwrap()),
    ];
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2027, 1, 1);
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem(), key.subject_public_key_info())
}

#[test]
fn a_certificate_is_read_as_it_was_made() {
    let (certificate, _, public_key) = made();
    let facts = read(&certificate).unwrap();
    assert_eq!(facts.common_name, "system:node:n1");
    assert_eq!(facts.organizations.iter().collect::<Vec<_>>(), ["system:nodes"]);
    assert_eq!(facts.dns_names.iter().collect::<Vec<_>>(), ["n1"]);
    let addresses: Vec<_> = facts.ip_addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.0.0.1", "2001:db8::1"]);
    assert_eq!((facts.not_before_s, facts.not_after_s), (1_767_225_600, 1_798_761_600));
    assert_eq!(facts.public_key, public_key);
    assert!(!facts.is_expired(1_798_761_600) && facts.is_expired(1_798_761_601));
}

#[test]
fn one_text_is_split_into_chain_and_key() {
    let (leaf, key, _) = made();
    let (issuer, ..) = made();
    let parts = split_pair(&format!("words\n{leaf}{key}more words\n{issuer}")).unwrap();
    let plain = |s: &str| s.replace("\r\n", "\n");
    assert_eq!(plain(&parts.certificates), plain(&format!("{leaf}{issuer}")));
    assert_eq!(plain(&parts.key), plain(&key));
    assert_eq!(read(&parts.certificates).unwrap(), read(&leaf).unwrap());
}

#[test]
fn broken_texts_are_told_apart() {
    let (certificate, key, _) = made();
    assert_eq!(split_pair(&certificate), Err(PemError::NoKey));
    assert_eq!(split_pair(&key), Err(PemError::NoCertificate));
    assert_eq!(split_pair(""), Err(PemError::NoCertificate));
    assert_eq!(split("-----BEGIN CERTIFICATE-----\nAAAA\n"), Err(PemError::Open("CERTIFICATE".to_owned())));
    assert_eq!(read(&key), Err(PemError::NoCertificate));
    let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(read(damaged), Err(PemError::Damaged(_))));
}
