//! Settings, and what the actor knows of one certificate.

use std::path::PathBuf;
use std::sync::Arc;

use actor::SpawnHandle;
use cert_rotation::{Facts, Files, Template, rotation};
use contract::certificates::KeyPair;

use crate::store::Held;

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

/// Which certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Serving,
}

/// What is under way.
#[derive(Debug, Default)]
pub(crate) enum Phase {
    /// Files are being read.
    #[default]
    Loading,
    /// Nothing.
    Idle,
    /// A failed request is tried again later.
    Pausing,
    /// A request.
    Requesting { effect: SpawnHandle, template: Template },
}

/// A certificate in force.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    pub(crate) pair: Arc<KeyPair>,
    pub(crate) facts: Facts,
    pub(crate) deadline_s: i64,
    pub(crate) imported: bool,
}

impl Current {
    pub(crate) fn new(held: Held, chance: f64, imported: bool) -> Self {
        let deadline_s = rotation::deadline_s(&held.facts, chance);
        Self { pair: Arc::new(held.pair), facts: held.facts, deadline_s, imported }
    }

    fn as_held(&self) -> rotation::Held<'_> {
        rotation::Held { facts: &self.facts, deadline_s: self.deadline_s, imported: self.imported }
    }
}

/// One certificate that is kept by requests.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) files: Files,
    /// Asked for once only.
    pub(crate) once: bool,
    pub(crate) phase: Phase,
    pub(crate) current: Option<Current>,
    /// Failures in a row.
    pub(crate) failures: u32,
    pub(crate) error: Option<String>,
}

impl Keeper {
    pub(crate) fn new(files: Files, once: bool) -> Self {
        Self { files, once, phase: Phase::Loading, current: None, failures: 0, error: None }
    }

    /// Whether there is a certificate that is not expired.
    pub(crate) fn is_valid(&self, now_s: i64) -> bool {
        self.current.as_ref().is_some_and(|c| !c.facts.is_expired(now_s))
    }

    /// Why a request is needed now.
    pub(crate) fn due(&self, now_s: i64, template: &Template) -> Option<String> {
        if self.once && self.current.is_some() {
            return None;
        }
        rotation::due(now_s, self.current.as_ref().map(Current::as_held), template)
    }

    pub(crate) fn pair(&self) -> Option<Arc<KeyPair>> {
        self.current.as_ref().map(|c| c.pair.clone())
    }
}
