//! Followed selections over the store: the whole first, then each change; after a cut, a failure and the whole again.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use ports::api::{ApiError, Followed, Kind, Method, Object, Selection};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::store::Event;
use super::target::{FieldSelector, Target};
use super::trouble::Trouble;
use super::{FakeApi, Shared};

/// Pause between two tries of a list that fails.
const AGAIN: Duration = Duration::from_secs(1);

/// Collection of a kind.
#[must_use]
pub fn collection(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Pod => ("v1", "pods"),
        Kind::Node => ("v1", "nodes"),
        Kind::Service => ("v1", "services"),
        Kind::ConfigMap => ("v1", "configmaps"),
        Kind::Secret => ("v1", "secrets"),
        Kind::RuntimeClass => ("node.k8s.io/v1", "runtimeclasses"),
        Kind::CertificateSigningRequest => ("certificates.k8s.io/v1", "certificatesigningrequests"),
        Kind::ClusterTrustBundle => ("certificates.k8s.io/v1beta1", "clustertrustbundles"),
        Kind::ClusterTrustBundleAlpha => ("certificates.k8s.io/v1alpha1", "clustertrustbundles"),
        Kind::PodCertificateRequest => ("certificates.k8s.io/v1beta1", "podcertificaterequests"),
        Kind::CsiDriver => ("storage.k8s.io/v1", "csidrivers"),
    }
}

/// What a stream of one follower knows.
struct Follower {
    api: FakeApi,
    changed: actor::watch::Receiver<u64>,
    selection: Selection,
    target: Target,
    fields: FieldSelector,
    path: String,
    /// `None`: list first.
    version: Option<u64>,
    /// Cuts that this stream has seen.
    cuts: u64,
    failed: bool,
    ready: std::collections::VecDeque<Followed>,
}

pub(super) fn follow(api: &FakeApi, selection: Selection) -> BoxStream<'static, Followed> {
    let (group_version, resource) = collection(selection.kind);
    let root = if group_version.contains('/') { "/apis" } else { "/api" };
    let namespace = selection.namespace.clone().unwrap_or_default();
    let within = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
    let target = Target {
        group_version: group_version.to_owned(),
        resource: resource.to_owned(),
        namespace,
        name: None,
        sub: None,
    };
    let follower = Follower {
        api: api.clone(),
        changed: api.shared.moved.subscribe(),
        fields: FieldSelector::parse(&selection.field_selector),
        path: format!("{root}/{group_version}{within}/{resource}"),
        selection,
        target,
        version: None,
        cuts: 0,
        failed: false,
        ready: std::collections::VecDeque::new(),
    };
    stream::unfold(follower, |mut follower| async move {
        let step = follower.next().await;
        Some((step, follower))
    })
    .boxed()
}

impl Follower {
    async fn next(&mut self) -> Followed {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return step;
            }
            let Some(version) = self.version else {
                if std::mem::take(&mut self.failed) {
                    tokio::time::sleep(AGAIN).await;
                }
                match self.list().await {
                    Ok(all) => return all,
                    Err(error) => {
                        self.failed = true;
                        return Followed::Failed(error);
                    }
                }
            };
            self.changed.borrow_and_update();
            if let Some(cut) = self.changes(version) {
                (self.version, self.failed) = (None, true);
                return Followed::Failed(cut);
            }
            if self.ready.is_empty() {
                // The sender lives in `self.api`, so it is never gone.
                let _ = self.changed.changed().await;
            }
        }
    }

    async fn list(&mut self) -> Result<Followed, ApiError> {
        let trouble = self.api.shared.with(|s| s.troubles.next(Method::Get, &self.path));
        match trouble {
            Some(Trouble::Fail(error) | Trouble::DoneButLost(error)) => return Err(error),
            Some(Trouble::Slow(time)) => tokio::time::sleep(time).await,
            Some(Trouble::Hang) => {
                tokio::time::sleep(ports::api::DEFAULT_DEADLINE).await;
                return Err(ApiError::TimedOut { after: ports::api::DEFAULT_DEADLINE });
            }
            Some(Trouble::Garbage) => return Err(ApiError::Garbage { message: "expected value at line 1".to_owned() }),
            Some(Trouble::Unaware(..)) | None => {}
        }
        let (objects, version, cuts) = self.api.shared.with(|s| {
            s.lists.push(self.selection.clone());
            (s.store.list(&self.target, &self.fields), s.store.version(), s.cuts)
        });
        (self.version, self.cuts) = (Some(version), cuts);
        let mut all = Vec::with_capacity(objects.len());
        for object in objects {
            match decode(self.selection.kind, &object) {
                Ok(object) => all.push(object),
                Err(error) => self.ready.push_back(Followed::Failed(error)),
            }
        }
        Ok(Followed::All(all))
    }

    /// Reads what happened since `version` into `ready`; the failure that ended the watch, if one did.
    fn changes(&mut self, version: u64) -> Option<ApiError> {
        let api = self.api.clone();
        let shared: &Shared = &api.shared;
        shared.with(|s| {
            if s.cuts != self.cuts {
                return Some(s.cut_with.clone());
            }
            if s.held {
                return None;
            }
            let changes = match s.store.changes(&self.target, &self.fields, version) {
                Ok(changes) => changes,
                Err(error) => return Some(error),
            };
            self.version = Some(s.store.version());
            for change in changes {
                self.ready.push_back(match (decode(self.selection.kind, &change.object), change.event) {
                    (Ok(object), Event::Deleted) => Followed::Deleted(object),
                    (Ok(object), _) => Followed::Applied(object),
                    (Err(error), _) => Followed::Failed(error),
                });
            }
            None
        })
    }
}

fn decode(kind: Kind, object: &Value) -> Result<Object, ApiError> {
    fn typed<T: DeserializeOwned>(object: &Value) -> Result<Arc<T>, ApiError> {
        T::deserialize(object).map(Arc::new).map_err(|e| ApiError::Garbage { message: e.to_string() })
    }
    Ok(match kind {
        Kind::Pod => Object::Pod(typed(object)?),
        Kind::Node => Object::Node(typed(object)?),
        Kind::Service => Object::Service(typed(object)?),
        Kind::ConfigMap => Object::ConfigMap(typed(object)?),
        Kind::Secret => Object::Secret(typed(object)?),
        Kind::RuntimeClass => Object::RuntimeClass(typed(object)?),
        Kind::CertificateSigningRequest => Object::CertificateSigningRequest(typed(object)?),
        Kind::ClusterTrustBundle => Object::ClusterTrustBundle(typed(object)?),
        Kind::ClusterTrustBundleAlpha => Object::of_alpha_bundle(typed(object)?),
        Kind::PodCertificateRequest => Object::PodCertificateRequest(typed(object)?),
        Kind::CsiDriver => Object::CsiDriver(typed(object)?),
    })
}
