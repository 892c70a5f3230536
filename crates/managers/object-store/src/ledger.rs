//! What outlives a restart of the actor: made once for the life of the daemon.

use std::collections::BTreeSet;
use std::sync::Arc;

use contract::objects::ObjectRef;
use contract::view::Board;
use model::core::{ConfigMap, Secret};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::{PodUid, Timestamp};

use crate::sealed::Sealed;

/// Holds of pods, and the last word of the API server on every object.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub(crate) holds: Board<PodUid, BTreeSet<ObjectRef>>,
    pub(crate) seen: Board<ObjectRef, Seen>,
    pub(crate) sealed: Option<Sealed>,
}

impl Ledger {
    /// A ledger whose objects outlive the daemon.
    #[must_use]
    pub fn sealed(cache: Sealed) -> Self {
        Self { sealed: Some(cache), ..Self::default() }
    }
}

/// What is known of one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    /// `None`: it does not exist.
    pub(crate) content: Option<Content>,
    /// When it was read.
    pub(crate) at: Timestamp,
    /// From the sealed cache: the API server has not been heard about it yet.
    pub(crate) stale: bool,
}

/// An object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    ConfigMap(Arc<ConfigMap>),
    Secret(Arc<Secret>),
}

impl Content {
    pub(crate) fn config_map(mut object: ConfigMap) -> Self {
        trim(&mut object.metadata);
        Self::ConfigMap(Arc::new(object))
    }

    pub(crate) fn secret(mut object: Secret) -> Self {
        trim(&mut object.metadata);
        Self::Secret(Arc::new(object))
    }

    fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::ConfigMap(o) => &o.metadata,
            Self::Secret(o) => &o.metadata,
        }
    }

    pub(crate) fn resource_version(&self) -> String {
        self.metadata().resource_version.clone().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.metadata().name.as_deref().unwrap_or_default()
    }

    pub(crate) fn immutable(&self) -> bool {
        let flag = match self {
            Self::ConfigMap(o) => o.immutable,
            Self::Secret(o) => o.immutable,
        };
        flag == Some(true)
    }
}

/// Nobody here reads who wrote which field, and it is the larger half of many objects.
fn trim(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}
