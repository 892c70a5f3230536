//! CertificateManager: the client and the serving certificate of this node. Asked by nobody; the API client and the HTTPS
//! server read its view.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use model::Timestamp;

/// A certificate with its key, as PEM.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPair {
    /// Leaf, then chain.
    pub certificate_pem: String,
    /// Private key (PKCS#8 or SEC1).
    pub key_pem: String,
    /// Start of its life.
    pub not_before: Timestamp,
    /// End of its life.
    pub not_after: Timestamp,
}

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyPair")
            .field("certificate_pem", &self.certificate_pem)
            .field("key_pem", &"<secret>")
            .field("not_after", &self.not_after)
            .finish()
    }
}

/// What CertificateManager publishes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateView {
    /// Client certificate in force (rotation or bootstrap), if this manager keeps one.
    pub client: Option<Arc<KeyPair>>,
    /// Serving certificate in force, if this manager keeps one.
    pub serving: Option<Arc<KeyPair>>,
    /// Last failure, cleared by a good request.
    pub error: Option<String>,
    /// The client certificate is past its end while the server is healthy: the daemon should exit with 1, so that it is
    /// started again and bootstraps anew (interfaces 3.10).
    pub must_exit: Option<String>,
}
