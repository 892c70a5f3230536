//! What outlives a restart of the actor: made once for the life of the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actor::Serial;
use model::core::{ConfigMap, Secret};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::object::ObjectRef;
use model::{PodUid, Timestamp};

use crate::certificates::Record;
use crate::sealed::SealedCache;

/// Which objects pods hold, and what the API server last said of each object.
#[derive(Clone, Debug, Default)]
pub struct ObjectCache {
    pub(crate) holds: Table<PodUid, BTreeSet<ObjectRef>>,
    pub(crate) objects: Table<ObjectRef, CachedObject>,
    /// Never written anywhere: another daemon asks for new ones.
    pub(crate) certificates: Table<ObjectRef, Record>,
    /// The way of keys that take long to make, one behind the other: a former generation may still make one.
    pub(crate) slow_keys: Serial<()>,
    pub(crate) sealed: Option<SealedCache>,
}

impl ObjectCache {
    /// A cache whose objects outlive the daemon.
    #[must_use]
    pub fn persistent(sealed: SealedCache) -> Self {
        Self { sealed: Some(sealed), ..Self::default() }
    }
}

/// Rows that every generation of the actor works on.
#[derive(Debug)]
pub(crate) struct Table<K, V>(Arc<Mutex<BTreeMap<K, V>>>);

impl<K, V> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Ord + Clone, V: Clone> Table<K, V> {
    fn rows(&self) -> MutexGuard<'_, BTreeMap<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.rows().get(key).cloned()
    }

    pub(crate) fn put(&self, key: K, value: V) {
        self.rows().insert(key, value);
    }

    pub(crate) fn remove(&self, key: &K) {
        self.rows().remove(key);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows().is_empty()
    }

    pub(crate) fn snapshot(&self) -> BTreeMap<K, V> {
        self.rows().clone()
    }
}

/// What is known of one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CachedObject {
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
