//! Answers to questions, by strategy.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use contract::board::BoardPoster;
use contract::objects::{ObjectError, ObjectVersion, ServiceAccountFacts};
use model::Timestamp;
use model::core::{ConfigMap, Secret, ServiceAccount};
use model::object::{ObjectKind, ObjectRef};
use ports::api::{ApiError, ApiExt, ApiServer};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::actor::Config;
use crate::keep::is_away;
use crate::ledger::{Content, Ledger, Seen};

/// Why a node without API server has no tokens, in a kubelet's words.
pub(crate) const STANDALONE_TOKEN: &str = "cannot use TokenManager when kubelet is in standalone mode";

/// An answer that is being found.
pub(crate) type Finding = Pin<Box<dyn Future<Output = Result<Content, ObjectError>>>>;

/// A question about one object.
pub(crate) struct Question {
    pub(crate) ledger: Ledger,
    pub(crate) versions: BoardPoster<ObjectRef, ObjectVersion>,
    pub(crate) config: Arc<Config>,
    pub(crate) api: Arc<dyn ApiServer>,
    pub(crate) object: ObjectRef,
    pub(crate) now: Timestamp,
}

impl Question {
    /// What following has shown; waits for its first word.
    pub(crate) async fn watched(self) -> Result<Content, ObjectError> {
        // Its version is shown once it has been seen.
        let mut version = self.versions.reader().subscribe(self.object.clone());
        let first = timeout(self.config.first_object, version.wait_for(Option::is_some)).await;
        let seen = if matches!(first, Ok(Ok(_))) { self.ledger.seen.get(&self.object) } else { None };
        match seen {
            Some(seen) => content(&self.object, &seen),
            None => {
                let kind = self.object.kind.singular();
                let text = format!("failed to sync {kind} cache: timed out waiting for the condition");
                Err(ObjectError::Failed(text))
            }
        }
    }

    /// A request for each question.
    pub(crate) async fn get(self) -> Result<Content, ObjectError> {
        match self.ask().await {
            Ok(found) => {
                self.ledger.keep(&self.object, Some(&found));
                Ok(found)
            }
            Err(e) => self.recall(e).await,
        }
    }

    /// What an earlier daemon saw, while the server is away.
    async fn recall(&self, e: ApiError) -> Result<Content, ObjectError> {
        let kept = if is_away(&e) { self.ledger.recall(&self.object).await } else { None };
        kept.ok_or_else(|| shown(e))
    }

    /// A request unless the last answer is young. A failure leaves the old answer in force.
    pub(crate) async fn cached(self) -> Result<Content, ObjectError> {
        let before = self.ledger.seen.get(&self.object);
        let life = i64::try_from(self.config.cache_life.as_nanos()).unwrap_or(i64::MAX);
        if let Some(seen) = before.as_ref().filter(|s| self.now.nanos_since(s.at) < life) {
            return content(&self.object, seen);
        }
        let found = match self.ask().await {
            Ok(found) => Some(found),
            Err(e) if e.is_not_found() => None,
            Err(e) => match before {
                Some(seen) => return content(&self.object, &seen),
                None => return self.recall(e).await,
            },
        };
        let seen = Seen { content: found, at: self.now, stale: false };
        let answer = content(&self.object, &seen);
        note(&self.ledger, &self.versions, &self.object, seen);
        answer
    }

    async fn ask(&self) -> Result<Content, ApiError> {
        let ObjectRef { kind, namespace, name } = &self.object;
        match kind {
            ObjectKind::ConfigMap => self.api.get::<ConfigMap>(Some(namespace), name).await.map(Content::config_map),
            ObjectKind::Secret => self.api.get::<Secret>(Some(namespace), name).await.map(Content::secret),
            ObjectKind::Unknown => {
                Err(ApiError::Garbage { message: format!("{namespace}/{name} is of a kind that is not known here") })
            }
        }
    }
}

/// Keeps what was seen, and tells when it is another version.
pub(crate) fn note(ledger: &Ledger, versions: &BoardPoster<ObjectRef, ObjectVersion>, object: &ObjectRef, seen: Seen) {
    let resource_version = seen.content.as_ref().map(Content::resource_version).unwrap_or_default();
    let version = ObjectVersion { resource_version };
    if !seen.stale {
        ledger.keep(object, seen.content.as_ref());
    }
    ledger.seen.put(object.clone(), seen);
    if versions.get(object).is_none_or(|row| *row != version) {
        versions.post(object.clone(), Arc::new(version));
    }
}

fn content(object: &ObjectRef, seen: &Seen) -> Result<Content, ObjectError> {
    let missing = || ObjectError::NotFound(format!("{} {:?} not found", object.kind.singular(), object.name));
    seen.content.clone().ok_or_else(missing)
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
