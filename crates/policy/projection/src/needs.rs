//! What must be fetched before the payload of a volume can be made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::core::{ConfigMap, Secret, ServiceAccountTokenProjection, Volume};

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

/// Names of objects in the pod's namespace, and tokens.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// ConfigMaps.
    pub config_maps: BTreeSet<String>,
    /// Secrets.
    pub secrets: BTreeSet<String>,
    /// Tokens.
    pub tokens: BTreeSet<TokenSlot>,
}

impl Needs {
    /// Adds what another volume needs.
    pub fn extend(&mut self, other: Self) {
        self.config_maps.extend(other.config_maps);
        self.secrets.extend(other.secrets);
        self.tokens.extend(other.tokens);
    }

    /// Nothing is to be fetched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.config_maps.is_empty() && self.secrets.is_empty() && self.tokens.is_empty()
    }
}

/// What the payload of this volume is made of. Nothing for volumes that hold no API objects.
#[must_use]
pub fn needs(volume: &Volume) -> Needs {
    let mut out = Needs::default();
    out.config_maps.extend(volume.config_map.iter().map(|v| v.name.clone()));
    out.secrets.extend(volume.secret.iter().filter_map(|v| v.secret_name.clone()));
    for source in volume.projected.iter().flat_map(|p| p.sources.iter().flatten()) {
        out.config_maps.extend(source.config_map.iter().map(|v| v.name.clone()));
        out.secrets.extend(source.secret.iter().map(|v| v.name.clone()));
        out.tokens.extend(source.service_account_token.iter().map(TokenSlot::of));
    }
    out
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
}

// Secrets and tokens stay out of logs.
impl std::fmt::Debug for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (maps, secrets) = (self.config_maps.keys(), self.secrets.keys());
        write!(f, "Fetched {{ configMaps: {maps:?}, secrets: {secrets:?}, tokens: {:?} }}", self.tokens.keys())
    }
}
