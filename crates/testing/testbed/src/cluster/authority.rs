//! The certificates of a cluster: one authority, and what it signs for servers, clients and nodes.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};

use crate::BedError;
use crate::error::file;

/// Who a certificate is for.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Common name: the user.
    pub name: String,
    /// Organization: the group.
    pub group: Option<String>,
    /// Host names and addresses; with some, it is a server's certificate, too.
    pub hosts: Vec<String>,
    /// Years from which and until which it is valid.
    pub years: (i32, i32),
}

impl Subject {
    /// A client.
    #[must_use]
    pub fn client(name: &str, group: Option<&str>) -> Self {
        let (name, group) = (name.to_owned(), group.map(str::to_owned));
        Subject { name, group, hosts: Vec::new(), years: (2020, 2100) }
    }

    /// A client that may do everything.
    #[must_use]
    pub fn admin() -> Self {
        Subject::client("bed-admin", Some("system:masters"))
    }

    /// The node of this name.
    #[must_use]
    pub fn node(name: &str) -> Self {
        Subject::client(&format!("system:node:{name}"), Some("system:nodes"))
    }
}

/// Where a certificate and its key lie, both PEM.
#[derive(Debug, Clone)]
pub struct KeyPairFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// The private key (PKCS 8).
    pub key: PathBuf,
}

/// A certificate authority whose files lie in one folder.
pub struct Authority {
    dir: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes an authority (`ca.crt`, `ca.key`), the API server's certificates and the service-account keys.
    pub(crate) fn create(dir: &Path, address: &str) -> Result<Self, BedError> {
        let key = KeyPair::generate().map_err(refused)?;
        let mut params = CertificateParams::new(Vec::new()).map_err(refused)?;
        params.distinguished_name.push(DnType::CommonName, "bed-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2100, 1, 1));
        let certificate = params.self_signed(&key).map_err(refused)?.pem();
        write(&dir.join("ca.crt"), &certificate)?;
        write(&dir.join("ca.key"), &key.serialize_pem())?;
        let authority = Authority { dir: dir.to_owned(), issuer: Issuer::new(params, key) };
        let names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost", "127.0.0.1", address];
        let hosts = names.map(str::to_owned).to_vec();
        authority.issue(&Subject { hosts, ..Subject::client("kube-apiserver", None) })?;
        authority.issue(&Subject::client("kube-apiserver-kubelet-client", Some("system:masters")))?;
        let key = KeyPair::generate().map_err(refused)?;
        write(&dir.join("sa.key"), &key.serialize_pem())?;
        write(&dir.join("sa.pub"), &key.public_key_pem())?;
        Ok(authority)
    }

    /// Signs a certificate for a new key; files are named after the subject and replace earlier ones.
    ///
    /// # Errors
    /// When a host name is none, or a file cannot be written.
    pub fn issue(&self, subject: &Subject) -> Result<KeyPairFiles, BedError> {
        let mut params = CertificateParams::new(subject.hosts.clone()).map_err(refused)?;
        params.distinguished_name.push(DnType::CommonName, subject.name.as_str());
        if let Some(group) = &subject.group {
            params.distinguished_name.push(DnType::OrganizationName, group.as_str());
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if !subject.hosts.is_empty() {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        let (from, until) = subject.years;
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
        let key = KeyPair::generate().map_err(refused)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(refused)?;
        let name = subject.name.replace(':', "-");
        let files = KeyPairFiles {
            certificate: self.dir.join(format!("{name}.crt")),
            key: self.dir.join(format!("{name}.key")),
        };
        write(&files.certificate, &certificate.pem())?;
        write(&files.key, &key.serialize_pem())?;
        Ok(files)
    }

    /// Path of the authority's own certificate.
    #[must_use]
    pub fn certificate_path(&self) -> PathBuf {
        self.dir.join("ca.crt")
    }

    /// The authority's own certificate, PEM.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn certificate(&self) -> Result<String, BedError> {
        let path = self.certificate_path();
        file("read", &path, std::fs::read_to_string(&path))
    }
}

fn write(path: &Path, text: &str) -> Result<(), BedError> {
    file("write", path, std::fs::write(path, text))
}

fn refused(error: rcgen::Error) -> BedError {
    BedError::Answer { from: "the certificate library".into(), detail: error.to_string() }
}
