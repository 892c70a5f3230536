//! Certificates of friends and others.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

pub(crate) struct Issued {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

/// What a certificate says; the default is a good one.
pub(crate) struct Wanted {
    pub(crate) name: &'static str,
    pub(crate) server: bool,
    pub(crate) years: (i32, i32),
}

impl Default for Wanted {
    fn default() -> Self {
        Self { name: "friend", server: false, years: (2020, 2120) }
    }
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("signed").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    pub(crate) fn client(&self, wanted: Wanted) -> Issued {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        if !wanted.name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, wanted.name);
        }
        let usages = [ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        params.extended_key_usages.push(usages[usize::from(wanted.server)].clone());
        params.not_before = date_time_ymd(wanted.years.0, 1, 1);
        params.not_after = date_time_ymd(wanted.years.1, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed").der().to_vec();
        Issued { certificate, key: key.serialize_der() }
    }
}
