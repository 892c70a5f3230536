//! Keys and their proofs, as the `openssl` of the machine sees them: another implementation than those that made them.

use std::process::Command;

use super::{KeyAndProof, generate, rsa_key};

/// Type, what openssl calls the key, and the signature of its request.
const TYPES: [(&str, &str, &str); 6] = [
    ("RSA3072", "(3072 bit, 2 primes)", "sha256WithRSAEncryption"),
    ("RSA4096", "(4096 bit, 2 primes)", "sha256WithRSAEncryption"),
    ("ECDSAP256", "ASN1 OID: prime256v1", "ecdsa-with-SHA256"),
    ("ECDSAP384", "ASN1 OID: secp384r1", "ecdsa-with-SHA384"),
    ("ECDSAP521", "ASN1 OID: secp521r1", "ecdsa-with-SHA512"),
    ("ED25519", "ED25519 Private-Key", "ED25519"),
];

fn key_of(key_type: &str) -> KeyAndProof {
    match key_type {
        "RSA3072" => rsa_key(3072).unwrap(),
        "RSA4096" => rsa_key(4096).unwrap(),
        other => generate(other).unwrap(),
    }
}

/// What it printed; it must end well.
fn openssl(args: &[&str]) -> String {
    let done = Command::new("openssl").args(args).output().expect("this test needs the program `openssl`");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "openssl {args:?}: {}", text(&done.stderr));
    text(&done.stdout) + &text(&done.stderr)
}

#[test]
fn every_type_of_a_kubelet_is_made_and_proves_itself_to_another_program() {
    let dir = tempfile::tempdir().unwrap();
    let (key_path, request_path) = (dir.path().join("key"), dir.path().join("request"));
    let (key_file, request_file) = (key_path.to_str().unwrap(), request_path.to_str().unwrap());
    for (key_type, named, signed) in TYPES {
        let (key, request) = key_of(key_type);
        std::fs::write(&key_path, &key).unwrap();
        std::fs::write(&request_path, &request).unwrap();
        assert!(openssl(&["pkey", "-in", key_file, "-noout", "-text", "-check"]).contains(named), "{key_type}");
        // Version 1 of PKCS#8 is 0: Go writes no other.
        let form = openssl(&["asn1parse", "-in", key_file]);
        assert!(form.lines().nth(1).unwrap().ends_with("prim: INTEGER           :00"), "{key_type}: {form}");
        assert!(key.starts_with("-----BEGIN PRIVATE KEY-----\n") && key.ends_with("-----END PRIVATE KEY-----\n"));
        assert!(key.lines().all(|l| l.len() <= 64), "{key_type}: {key}");

        let told = openssl(&["req", "-inform", "DER", "-in", request_file, "-noout", "-verify", "-text"]);
        assert!(told.contains("verify OK"), "{key_type}: {told}");
        assert!(told.contains(&format!("Signature Algorithm: {signed}\n")), "{key_type}: {told}");
        assert!(told.lines().any(|l| l.trim() == "Subject:"), "{key_type} names nobody: {told}");
        assert!(told.contains("(none)"), "{key_type} has no attributes: {told}");
        let of_key = openssl(&["pkey", "-in", key_file, "-pubout"]);
        let of_request = openssl(&["req", "-inform", "DER", "-in", request_file, "-noout", "-pubkey"]);
        assert_eq!(of_request, of_key, "{key_type}: the request is for this key");
        if !key_type.starts_with("RSA") {
            assert_ne!(key_of(key_type).0, key, "{key_type}: each has its own");
        }
    }
}

#[test]
fn a_type_that_nobody_knows_is_refused() {
    assert_eq!(generate("DSA").unwrap_err(), "unknown key type \"DSA\"");
}
