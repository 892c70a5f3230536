//! Certificates for tests.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, date_time_ymd,
};

/// A certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate.
    pub pem: String,
}

/// A certificate with its key, both in PEM.
#[derive(Clone, Debug)]
pub struct Issued {
    /// Certificate.
    pub certificate: String,
    /// Key.
    pub key: String,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new authority.
    #[must_use]
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("ring makes P-256 keys");
        let pem = params.self_signed(&key).expect("a sound request").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// For a server at 127.0.0.1, `localhost` and a name.
    #[must_use]
    pub fn server(&self, name: &str) -> Issued {
        let names = ["127.0.0.1", "localhost", name].map(str::to_owned).to_vec();
        let mut params = CertificateParams::new(names).expect("names that are names");
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        self.issue(params)
    }

    /// For a node.
    #[must_use]
    pub fn node(&self, name: &str) -> Issued {
        self.client(name, (2020, 2120))
    }

    /// For a node, valid from the first day of a year to the first day of another.
    #[must_use]
    pub fn client(&self, node: &str, years: (i32, i32)) -> Issued {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        params.distinguished_name.push(DnType::CommonName, format!("system:node:{node}"));
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        self.issue(params)
    }

    fn issue(&self, params: CertificateParams) -> Issued {
        let key = KeyPair::generate().expect("ring makes P-256 keys");
        let certificate = params.signed_by(&key, &self.issuer).expect("a sound request").pem();
        Issued { certificate, key: key.serialize_pem() }
    }
}
