//! Settings.

use std::path::PathBuf;

/// A certificate with its key as PEM texts.
#[derive(Clone, PartialEq, Eq)]
pub struct PemPair {
    /// Leaf, then chain.
    pub certificate: String,
    /// Private key.
    pub key: String,
}

impl std::fmt::Debug for PemPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PemPair").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Where the client certificate comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClientSource {
    /// Not this manager's: the kubeconfig is used as it is (`rotateCertificates: false`), or there is no API server.
    #[default]
    Off,
    /// `rotateCertificates: true`: asked for at once when there is none, then before its end.
    Rotate {
        /// Pair that stands in the kubeconfig: used when the folder has none, and replaced at once.
        imported: Option<PemPair>,
        /// Files that the kubeconfig names (certificate, key): read when the folder has no current pair.
        files: Option<(PathBuf, PathBuf)>,
    },
    /// `rotateCertificates: false` with a bootstrap kubeconfig: asked for once, then kept.
    Once,
}

/// Where the serving certificate comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServingSource {
    /// Not this manager's.
    #[default]
    Off,
    /// `serverTLSBootstrap: true`: requests for the node's addresses.
    Rotate {
        /// `tlsCertFile` and `tlsPrivateKeyFile`: read when the folder has no current pair.
        files: Option<(PathBuf, PathBuf)>,
    },
    /// `tlsCertFile` and `tlsPrivateKeyFile`, read again when they change.
    Files {
        /// Leaf, then chain.
        certificate: PathBuf,
        /// Private key.
        key: PathBuf,
    },
    /// `kubelet.crt` and `kubelet.key` in the folder, made for this host name when they are not there.
    SelfSigned {
        /// Name or address of the machine.
        hostname: String,
    },
}

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Certificate folder (`--cert-dir`, `<root>/pki`), absolute.
    pub cert_dir: PathBuf,
    /// Name of this node.
    pub node_name: String,
    /// Client certificate.
    pub client: ClientSource,
    /// Serving certificate.
    pub serving: ServingSource,
}
