use std::io::Write;

use super::*;

fn certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["node".to_owned()]).expect("a certificate");
    (made.cert.pem(), made.signing_key.serialize_pem())
}

#[test]
fn certificates_and_keys_are_read_and_a_broken_one_is_a_mistake() {
    let (one, key_pem) = certificate();
    let two = format!("{one}text between\n{}", certificate().0);
    assert_eq!(certificates(two.as_bytes()).expect("both").len(), 2);
    assert_eq!(authorities(two.as_bytes()).expect("both").len(), 2);
    assert!(certificates(b"no PEM").expect("none").is_empty());
    assert!(key(key_pem.as_bytes()).is_ok() && key(one.as_bytes()).is_err());
    let broken = "-----BEGIN CERTIFICATE-----\n%%%%\n-----END CERTIFICATE-----\n";
    assert!(matches!(authorities(broken.as_bytes()), Err(PemError::Pem(_))));
    let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(authorities(no_certificate.as_bytes()), Err(PemError::Authority(_))));
    assert!(matches!(clients_of(RootCertStore::empty()), Err(PemError::Authority(_))));
}

#[test]
fn of_the_machines_bundle_what_is_not_understood_is_left_out() {
    let mut bundle = tempfile::NamedTempFile::new().expect("a file");
    let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    write!(bundle, "{no_certificate}").expect("written");
    assert!(readable(bundle.path()).is_none(), "a bundle that holds nothing is passed over");
    write!(bundle, "{}", certificate().0).expect("written");
    assert_eq!(readable(bundle.path()).expect("one").len(), 1);
    assert!(readable(Path::new("/nonexistent")).is_none());
}
