//! Keys of pods' certificates, with the request that proves that we have them: an empty PKCS#10 request, signed with the
//! hash that Go takes for the key (SHA-256 for RSA and P-256, SHA-384 for P-384, SHA-512 for P-521).

use actor::{Class, Effects, Serial};
use p521::ecdsa::signature::Signer;
use p521::ecdsa::{DerSignature, SigningKey};
use p521::elliptic_curve::Generate;
use p521::elliptic_curve::common::getrandom::SysRng;
use p521::pkcs8::{EncodePrivateKey, EncodePublicKey, LineEnding};
use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384};
use ring::rand::{SecureRandom, SystemRandom};
use yasna::models::ObjectIdentifier;

/// A private key as PKCS#8 PEM, and a PKCS#10 request (DER) that was signed with it.
pub(crate) type KeyAndProof = (String, Vec<u8>);

/// An Ed25519 key in PKCS#8 (RFC 8410, section 7) up to its 32 bytes.
const ED25519_PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
const ECDSA_WITH_SHA512: [u64; 7] = [1, 2, 840, 10045, 4, 3, 4];

/// A new key of this type. One that takes long is made on a thread of its own, and one such key at a time: many pods that
/// come at once leave the second computing thread, and a processor, to others.
///
/// # Errors
/// Nobody knows the key type, or there is no randomness.
pub(crate) async fn make(key_type: &str, effects: &Effects, one_by_one: &Serial<()>) -> Result<KeyAndProof, String> {
    let bits = match key_type {
        "RSA3072" => 3072,
        "RSA4096" => 4096,
        quick => return named(generate(quick)),
    };
    named(one_by_one.run(&(), effects, Class::Computing, move || rsa_key(bits)).await)
}

fn named(made: Result<KeyAndProof, String>) -> Result<KeyAndProof, String> {
    made.map_err(|e| format!("while generating keypair: {e}"))
}

/// A few milliseconds at most.
fn generate(key_type: &str) -> Result<KeyAndProof, String> {
    match key_type {
        "ECDSAP256" => {
            KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|e| e.to_string()).and_then(|k| proven(&k))
        }
        "ECDSAP384" => {
            KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).map_err(|e| e.to_string()).and_then(|k| proven(&k))
        }
        "ECDSAP521" => p521_key(),
        "ED25519" => ed25519_key(),
        other => Err(format!("unknown key type {other:?}")),
    }
}

/// The request of a key that ring signs with.
fn proven(key: &KeyPair) -> Result<KeyAndProof, String> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(key).map_err(|e| format!("the stub PKCS#10 request: {e}"))?;
    Ok((key.serialize_pem(), request.der().to_vec()))
}

/// ring cannot make RSA keys, only sign with them. Half a second for 3072 bits, two for 4096; by chance several times that.
fn rsa_key(bits: usize) -> Result<KeyAndProof, String> {
    let key = rsa::PrivateKey::new(&mut SysRng, bits).map_err(|e| format!("RSA {bits}: {e}"))?;
    let der = key.to_pkcs8_der().map_err(|e| format!("RSA {bits} as PKCS#8: {e}"))?;
    proven(&KeyPair::try_from(der.as_bytes()).map_err(|e| format!("RSA {bits}: {e}"))?)
}

/// As Go writes it. What ring makes has the public key beside the private one (PKCS#8 version 2), and OpenSSL 3.0 cannot
/// read that.
fn ed25519_key() -> Result<KeyAndProof, String> {
    let mut der = [0; 48];
    let (head, seed) = der.split_at_mut(ED25519_PKCS8.len());
    head.copy_from_slice(&ED25519_PKCS8);
    SystemRandom::new().fill(seed).map_err(|_| "Ed25519: no randomness".to_owned())?;
    proven(&KeyPair::try_from(&der[..]).map_err(|e| format!("Ed25519: {e}"))?)
}

/// ring does not know the curve at all, so the request is written here.
fn p521_key() -> Result<KeyAndProof, String> {
    let key = SigningKey::try_generate().map_err(|e| format!("P-521: {e}"))?;
    let pem = key.to_pkcs8_pem(LineEnding::LF).map_err(|e| format!("P-521 as PKCS#8: {e}"))?;
    let public = key.verifying_key().to_public_key_der().map_err(|e| format!("the public key of P-521: {e}"))?;
    let info = yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_u8(0);
            writer.next().write_sequence(|_no_name| {});
            writer.next().write_der(public.as_bytes());
            writer.next().write_tagged_implicit(yasna::Tag::context(0), |w| w.write_set_of(|_no_attributes| {}));
        });
    });
    let signature: DerSignature = key.try_sign(&info).map_err(|e| format!("the stub PKCS#10 request: {e}"))?;
    let request = yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_der(&info);
            let algorithm = ObjectIdentifier::from_slice(&ECDSA_WITH_SHA512);
            writer.next().write_sequence(|writer| writer.next().write_oid(&algorithm));
            writer.next().write_bitvec_bytes(signature.as_bytes(), signature.as_bytes().len() * 8);
        });
    });
    Ok((pem.to_string(), request))
}

#[cfg(test)]
mod tests;
