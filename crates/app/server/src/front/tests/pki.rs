//! Certificates for tests.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(super) pem: String,
}

#[derive(Clone)]
pub(super) struct Issued {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// What a certificate says; the default is a good one for user `alice`.
pub(super) struct Wanted {
    pub(super) name: &'static str,
    pub(super) groups: &'static [&'static str],
    pub(super) usage: ExtendedKeyUsagePurpose,
    pub(super) years: (i32, i32),
}

impl Default for Wanted {
    fn default() -> Self {
        let usage = ExtendedKeyUsagePurpose::ClientAuth;
        Self { name: "alice", groups: &["ops"], usage, years: (2020, 2120) }
    }
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    pub(super) fn server(&self) -> Issued {
        let mut params = CertificateParams::new(vec!["node".to_owned()]).unwrap();
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        self.issue(params)
    }

    pub(super) fn client(&self, wanted: Wanted) -> Issued {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for group in wanted.groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        if !wanted.name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, wanted.name);
        }
        params.extended_key_usages.push(wanted.usage);
        params.not_before = date_time_ymd(wanted.years.0, 1, 1);
        params.not_after = date_time_ymd(wanted.years.1, 1, 1);
        self.issue(params)
    }

    /// A good one that ends soon.
    pub(super) fn short(&self, life: std::time::Duration) -> Issued {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "alice");
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        params.not_after = (std::time::SystemTime::now() + life).into();
        self.issue(params)
    }

    fn issue(&self, params: CertificateParams) -> Issued {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Issued { certificate, key: key.serialize_pem() }
    }
}
