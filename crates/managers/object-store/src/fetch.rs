//! Look-ups of objects, by strategy.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actor::watch;
use contract::board::BoardPoster;
use contract::objects::{ObjectError, ObjectVersion, ServiceAccountFacts};
use model::Timestamp;
use model::core::{ConfigMap, Secret, ServiceAccount};
use model::object::{ObjectKind, ObjectRef};
use ports::api::{ApiError, ApiExt, ApiServer};
use tokio::time::timeout;

use crate::cache::{CachedObject, Content, ObjectCache};
use crate::deps::Config;

/// Why a node without API server has no tokens, in a kubelet's words.
pub(crate) const STANDALONE_TOKEN: &str = "cannot use TokenManager when kubelet is in standalone mode";

/// An answer under way.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<Content, ObjectError>>>>;

/// A look-up of one object.
pub(crate) struct Lookup {
    pub(crate) cache: ObjectCache,
    pub(crate) versions: BoardPoster<ObjectRef, ObjectVersion>,
    pub(crate) config: Arc<Config>,
    pub(crate) api: Arc<dyn ApiServer>,
    pub(crate) object: ObjectRef,
    pub(crate) now: Timestamp,
}

impl Lookup {
    /// What following has shown; waits for its first word.
    pub(crate) async fn watched(self) -> Result<Content, ObjectError> {
        // Its version is shown once it has been seen.
        let mut version = self.versions.reader().subscribe(self.object.clone());
        let first = timeout(self.config.first_object, version.wait_for(Option::is_some)).await;
        let cached = if matches!(first, Ok(Ok(_))) { self.cache.objects.get(&self.object) } else { None };
        match cached {
            Some(cached) => content(&self.object, &cached),
            None => {
                let kind = self.object.kind.singular();
                let text = format!("failed to sync {kind} cache: timed out waiting for the condition");
                Err(ObjectError::Failed(text))
            }
        }
    }

    /// A request each time.
    pub(crate) async fn get(self) -> Result<Content, ObjectError> {
        match self.ask().await {
            Ok(found) => {
                self.cache.persist(&self.object, Some(&found));
                Ok(found)
            }
            Err(e) => self.restore(e).await,
        }
    }

    /// What an earlier daemon saw, while the server is away.
    async fn restore(&self, e: ApiError) -> Result<Content, ObjectError> {
        let kept = if is_away(&e) { self.cache.restore(&self.object).await } else { None };
        kept.ok_or_else(|| shown(e))
    }

    /// A request unless the last answer is young. A failure leaves the old answer in force.
    pub(crate) async fn cached(self) -> Result<Content, ObjectError> {
        let before = self.cache.objects.get(&self.object);
        let life = i64::try_from(self.config.cache_life.as_nanos()).unwrap_or(i64::MAX);
        if let Some(young) = before.as_ref().filter(|c| self.now.nanos_since(c.at) < life) {
            return content(&self.object, young);
        }
        let found = match self.ask().await {
            Ok(found) => Some(found),
            Err(e) if e.is_not_found() => None,
            Err(e) => match before {
                Some(old) => return content(&self.object, &old),
                None => return self.restore(e).await,
            },
        };
        let fresh = CachedObject { content: found, at: self.now, stale: false };
        let answer = content(&self.object, &fresh);
        store(&self.cache, &self.versions, &self.object, fresh);
        answer
    }

    async fn ask(&self) -> Result<Content, ApiError> {
        let ObjectRef { kind, namespace, name } = &self.object;
        match kind {
            ObjectKind::ConfigMap => self.api.get::<ConfigMap>(Some(namespace), name).await.map(Content::config_map),
            ObjectKind::Secret => self.api.get::<Secret>(Some(namespace), name).await.map(Content::secret),
            ObjectKind::ClusterTrustBundle | ObjectKind::PodCertificate | ObjectKind::Unknown => {
                Err(ApiError::Garbage { message: format!("{namespace}/{name} is of a kind that is not known here") })
            }
        }
    }
}

/// Keeps what the server said, and posts the version when it is another.
pub(crate) fn store(
    cache: &ObjectCache,
    versions: &BoardPoster<ObjectRef, ObjectVersion>,
    object: &ObjectRef,
    cached: CachedObject,
) {
    let resource_version = cached.content.as_ref().map(Content::resource_version).unwrap_or_default();
    let version = ObjectVersion { resource_version };
    if !cached.stale {
        cache.persist(object, cached.content.as_ref());
    }
    cache.objects.put(object.clone(), cached);
    if versions.get(object).is_none_or(|row| *row != version) {
        versions.post(object.clone(), Arc::new(version));
    }
}

fn content(object: &ObjectRef, cached: &CachedObject) -> Result<Content, ObjectError> {
    let missing = || ObjectError::NotFound(format!("{} {:?} not found", object.kind.singular(), object.name));
    cached.content.clone().ok_or_else(missing)
}

/// Nothing is wrong with the request: the server is away, or cannot answer. A refusal is an answer.
pub(crate) fn is_away(error: &ApiError) -> bool {
    error.is_transient() && error.code() != Some(429)
}

fn shown(e: ApiError) -> ObjectError {
    if e.is_not_found() { ObjectError::NotFound(e.to_string()) } else { ObjectError::Failed(e.to_string()) }
}

pub(crate) fn not_registered(object: &ObjectRef) -> ObjectError {
    ObjectError::NotRegistered(format!("object {:?}/{:?} not registered", object.namespace, object.name))
}

/// A node without API server has no objects.
pub(crate) fn no_client(object: &ObjectRef) -> ObjectError {
    let kind = object.kind.camel_case();
    ObjectError::Failed(format!("couldn't get {kind} {}/{}, no kubeClient defined", object.namespace, object.name))
}

pub(crate) fn other_kind() -> ObjectError {
    ObjectError::Failed("the API server answered with an object of another kind".to_owned())
}

/// Waits until a list has been read once; `false`: not in time.
pub(crate) fn synced(flag: &watch::Sender<bool>, limit: Duration) -> impl Future<Output = bool> + 'static {
    let mut flag = flag.subscribe();
    async move { matches!(timeout(limit, flag.wait_for(|synced| *synced)).await, Ok(Ok(_))) }
}

/// Facts of a service account, asked for each time: credential providers cache by themselves.
pub(crate) async fn service_account(
    api: Arc<dyn ApiServer>,
    namespace: String,
    name: String,
) -> Result<ServiceAccountFacts, ObjectError> {
    let account: ServiceAccount = api.get(Some(&namespace), &name).await.map_err(shown)?;
    Ok(ServiceAccountFacts {
        uid: account.metadata.uid.unwrap_or_default(),
        annotations: account.metadata.annotations.unwrap_or_default(),
    })
}
