//! What ObjectStore is made with.

use std::sync::Arc;
use std::time::Duration;

use ports::api::ApiServer;

use crate::cache::ObjectCache;

/// How changes of configMaps and secrets are noticed (`configMapAndSecretChangeDetectionStrategy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Each object that a pod names is followed.
    #[default]
    Watch,
    /// Each question is a request.
    Get,
    /// As `Get`, with answers kept for [`Config::cache_life`].
    Cache,
}

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// How changes are noticed.
    pub strategy: Strategy,
    /// An object that nobody names any more is followed this much longer.
    pub linger: Duration,
    /// How long answers are kept with [`Strategy::Cache`].
    pub cache_life: Duration,
    /// How long a question about all services or classes waits for the first answer of the server.
    pub first_answer: Duration,
    /// How long one about a configMap or secret does. A kubelet waits 1 s and then tells of a failure, also where many pods
    /// that come at once only make the server slow.
    pub first_object: Duration,
    /// Gate `ClusterTrustBundleProjection`: pods may have trust anchors of the cluster.
    pub trust_bundles: bool,
    /// Gate `PodCertificateRequest`: pods may have certificates.
    pub pod_certificates: bool,
    /// Name of the node.
    pub node_name: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            strategy: Strategy::Watch,
            linger: Duration::from_secs(60),
            cache_life: Duration::from_secs(60),
            first_answer: Duration::from_secs(1),
            first_object: Duration::from_secs(5),
            trust_bundles: false,
            pod_certificates: false,
            node_name: String::new(),
        }
    }
}

/// What ObjectStore works with.
#[derive(Clone)]
pub struct Deps {
    /// `None`: standalone.
    pub api: Option<Arc<dyn ApiServer>>,
    /// Made once for the life of the daemon.
    pub cache: ObjectCache,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("object_store::Deps")
    }
}
