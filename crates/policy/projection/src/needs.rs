//! What must be fetched before the payload of a volume can be made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::core::{ClusterTrustBundleProjection, ConfigMap, Pod, Secret, ServiceAccountTokenProjection, Volume};
use model::pod;

/// Life of a token when the projection names none, in seconds.
const DEFAULT_EXPIRATION_S: i64 = 3600;

/// One token of the pod's service account.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TokenSlot {
    /// For whom; empty: the API server.
    pub audience: String,
    /// Life in seconds.
    pub expiration_s: i64,
}

impl TokenSlot {
    /// The token that a projection asks for.
    #[must_use]
    pub fn of(source: &ServiceAccountTokenProjection) -> Self {
        Self {
            audience: source.audience.clone().unwrap_or_default(),
            expiration_s: source.expiration_seconds.unwrap_or(DEFAULT_EXPIRATION_S),
        }
    }
}

/// One source of a projected volume.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SourceSlot {
    /// Name of the volume.
    pub volume: String,
    /// Place in its list of sources.
    pub index: usize,
}

/// Names of objects in the pod's namespace, tokens, and what single sources ask for.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Needs {
    /// ConfigMaps.
    pub config_maps: BTreeSet<String>,
    /// Secrets.
    pub secrets: BTreeSet<String>,
    /// Tokens.
    pub tokens: BTreeSet<TokenSlot>,
    /// Trust anchors.
    pub trust_anchors: BTreeMap<SourceSlot, ClusterTrustBundleProjection>,
    /// Certificates of the pod.
    pub certificates: BTreeSet<SourceSlot>,
}

impl Needs {
    /// Adds what another volume needs.
    pub fn extend(&mut self, other: Self) {
        self.config_maps.extend(other.config_maps);
        self.secrets.extend(other.secrets);
        self.tokens.extend(other.tokens);
        self.trust_anchors.extend(other.trust_anchors);
        self.certificates.extend(other.certificates);
    }

    /// Nothing is to be fetched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { config_maps, secrets, tokens, trust_anchors, certificates } = self;
        let of_api = config_maps.is_empty() && secrets.is_empty() && tokens.is_empty();
        of_api && trust_anchors.is_empty() && certificates.is_empty()
    }
}

/// What the payload of this volume is made of. Nothing for volumes that hold no API objects.
#[must_use]
pub fn needs(volume: &Volume) -> Needs {
    let mut out = Needs::default();
    out.config_maps.extend(volume.config_map.iter().map(|v| v.name.clone()));
    out.secrets.extend(volume.secret.iter().filter_map(|v| v.secret_name.clone()));
    for (index, source) in volume.projected.iter().flat_map(|p| p.sources.iter().flatten()).enumerate() {
        let slot = || SourceSlot { volume: volume.name.clone(), index };
        out.config_maps.extend(source.config_map.iter().map(|v| v.name.clone()));
        out.secrets.extend(source.secret.iter().map(|v| v.name.clone()));
        out.tokens.extend(source.service_account_token.iter().map(TokenSlot::of));
        out.trust_anchors.extend(source.cluster_trust_bundle.iter().map(|b| (slot(), b.clone())));
        out.certificates.extend(source.pod_certificate.iter().map(|_| slot()));
    }
    out
}

/// Tokens in volumes that some container of the pod mounts: what it will ask for when it starts. The tokens that drivers are
/// handed are not among them.
#[must_use]
pub fn tokens(pod: &Pod) -> BTreeSet<TokenSlot> {
    let ephemeral: Vec<_> = pod::ephemeral_containers(pod).map(|(c, _)| c).collect();
    let containers = pod::init_containers(pod).iter().chain(pod::regular_containers(pod)).chain(&ephemeral);
    let mounted: BTreeSet<&str> = containers.flat_map(|c| c.volume_mounts.iter().flatten().map(|m| &*m.name)).collect();
    let volumes = pod.spec.iter().flat_map(|s| s.volumes.iter().flatten());
    volumes.filter(|v| mounted.contains(&*v.name)).flat_map(|v| needs(v).tokens).collect()
}

/// An object that was not to be had.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text}")]
pub struct Missing {
    /// The API server does not have it: what `optional` forgives.
    pub not_found: bool,
    /// What a kubelet says of it, e.g. `configmap "x" not found`.
    pub text: String,
}

/// What was fetched. An object that is not in here counts as not fetched, which is an error.
#[derive(Clone, Default)]
pub struct Fetched {
    /// ConfigMaps by name.
    pub config_maps: BTreeMap<String, Result<Arc<ConfigMap>, Missing>>,
    /// Secrets by name.
    pub secrets: BTreeMap<String, Result<Arc<Secret>, Missing>>,
    /// Tokens.
    pub tokens: BTreeMap<TokenSlot, Result<String, Missing>>,
    /// Trust anchors, as PEM.
    pub trust_anchors: BTreeMap<SourceSlot, Result<Arc<str>, Missing>>,
    /// Certificates of the pod, with their keys.
    pub certificates: BTreeMap<SourceSlot, Result<Credential, Missing>>,
}

/// A certificate of a pod, with its key.
#[derive(Clone)]
pub struct Credential {
    /// Private key, as PEM.
    pub key_pem: Arc<str>,
    /// Certificates, the pod's own first, as PEM.
    pub chain_pem: Arc<str>,
}

// Secrets, tokens and keys stay out of logs.
impl std::fmt::Debug for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (maps, secrets) = (self.config_maps.keys(), self.secrets.keys());
        let (tokens, anchors, certificates) = (self.tokens.keys(), self.trust_anchors.keys(), self.certificates.keys());
        write!(f, "Fetched {{ configMaps: {maps:?}, secrets: {secrets:?}, tokens: {tokens:?}, ")?;
        write!(f, "anchors: {anchors:?}, certificates: {certificates:?} }}")
    }
}
