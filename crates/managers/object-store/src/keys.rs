//! Keys of pods' certificates, with the request that proves that we have them.

use rcgen::{
    CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
};

/// Why no key of this type is made here; `None`: it is, or nobody knows it.
pub(crate) fn unsupported(key_type: &str) -> Option<String> {
    let is_known = matches!(key_type, "RSA3072" | "RSA4096" | "ECDSAP521");
    let instead = "this node makes keys of the types ECDSAP256, ECDSAP384 and ED25519";
    is_known.then(|| format!("key type {key_type:?} is not supported: {instead}"))
}

/// A new key as PKCS#8 PEM, and an empty PKCS#10 request (DER) signed with it. A few hundred microseconds at most.
///
/// # Errors
/// The key type is none that the cryptography library here makes, or it has no randomness.
pub(crate) fn generate(key_type: &str) -> Result<(String, Vec<u8>), String> {
    let algorithm = match key_type {
        "ECDSAP256" => &PKCS_ECDSA_P256_SHA256,
        "ECDSAP384" => &PKCS_ECDSA_P384_SHA384,
        "ED25519" => &PKCS_ED25519,
        other => {
            let why = unsupported(other).unwrap_or_else(|| format!("unknown key type {other:?}"));
            return Err(format!("while generating keypair: {why}"));
        }
    };
    let key = KeyPair::generate_for(algorithm).map_err(|e| format!("while generating keypair: {e}"))?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key).map_err(|e| format!("while generating stub PKCS#10 request: {e}"))?;
    Ok((key.serialize_pem(), request.der().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::generate;

    #[test]
    fn keys_of_three_types_are_made() {
        for key_type in ["ECDSAP256", "ECDSAP384", "ED25519"] {
            let (key, request) = generate(key_type).unwrap();
            assert!(key.starts_with("-----BEGIN PRIVATE KEY-----\n"), "{key_type}");
            let again = rcgen::KeyPair::from_pem(&key).unwrap();
            let public = rcgen::PublicKeyData::der_bytes(&again).to_vec();
            assert!(request.windows(public.len()).any(|w| w == public), "{key_type}: the request is for this key");
            assert_ne!(generate(key_type).unwrap().0, key, "{key_type}: each has its own");
        }
    }

    #[test]
    fn other_types_are_refused_with_a_reason() {
        for key_type in ["RSA3072", "RSA4096", "ECDSAP521"] {
            let text = generate(key_type).unwrap_err();
            assert!(text.contains(key_type) && text.contains("ECDSAP256"), "{text}");
        }
        assert_eq!(generate("DSA").unwrap_err(), "while generating keypair: unknown key type \"DSA\"");
    }
}
