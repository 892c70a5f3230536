//! What others do to the cluster while the node runs: users, the scheduler, controllers.

use std::time::Duration;

use model::k8s_openapi::{ListableResource, Metadata, Resource};
use ports::api::{ApiError, Method};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::target::FieldSelector;
use super::{FakeApi, Target};

/// How long [`FakeApi::until`] waits (tokio's clock).
const PATIENCE: Duration = Duration::from_secs(3600);

fn target<K: Resource>(namespace: Option<&str>, name: Option<&str>) -> Target {
    Target {
        group_version: K::API_VERSION.to_owned(),
        resource: K::URL_PATH_SEGMENT.to_owned(),
        namespace: namespace.unwrap_or_default().to_owned(),
        name: name.map(str::to_owned),
        sub: None,
    }
}

fn path(target: &Target) -> String {
    let root = if target.group_version.contains('/') { "/apis" } else { "/api" };
    let namespace = &target.namespace;
    let within = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
    let name = target.name.as_ref().map(|n| format!("/{n}")).unwrap_or_default();
    format!("{root}/{}{within}/{}{name}", target.group_version, target.resource)
}

fn typed<K: DeserializeOwned>(object: &Value) -> K {
    K::deserialize(object).expect("what tests put in is of its kind")
}

impl FakeApi {
    /// Stores an object as it is, status included, and answers with it: uid, times and version filled in where missing.
    /// An object of that name is replaced and keeps its uid, unless a new one is given.
    pub fn put<K>(&self, object: &K) -> K
    where
        K: ListableResource + Metadata<Ty = model::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta>,
        K: Serialize + DeserializeOwned,
    {
        let meta = object.metadata();
        let target = target::<K>(meta.namespace.as_deref(), meta.name.as_deref());
        let now = self.now();
        let value = serde_json::to_value(object).expect("API types can be written as JSON");
        typed(&self.store(|s| s.seed(&target, value, now)))
    }

    /// As [`FakeApi::put`] with JSON; `path` names the object. May be something that no typed object can hold.
    pub fn put_json(&self, path: &str, object: Value) {
        let target = Target::parse(path).expect("a path of the API");
        let now = self.now();
        self.store(|s| s.seed(&target, object, now));
    }

    /// Reads one object.
    #[must_use]
    pub fn read<K: ListableResource + DeserializeOwned>(&self, namespace: Option<&str>, name: &str) -> Option<K> {
        let target = target::<K>(namespace, Some(name));
        self.shared.with(|s| s.store.get(&target)).map(|o| typed(&o))
    }

    /// Reads all objects of a kind; `None`: of all namespaces.
    #[must_use]
    pub fn read_all<K: ListableResource + DeserializeOwned>(&self, namespace: Option<&str>) -> Vec<K> {
        let target = target::<K>(namespace, None);
        let all = self.shared.with(|s| s.store.list(&target, &FieldSelector::default()));
        all.iter().map(|o| typed(o)).collect()
    }

    /// Changes one object, status included.
    pub fn change<K>(&self, namespace: Option<&str>, name: &str, change: impl FnOnce(&mut K))
    where
        K: ListableResource + Metadata<Ty = model::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta>,
        K: Serialize + DeserializeOwned,
    {
        let mut object: K = self.read(namespace, name).expect("the object that a test changes exists");
        change(&mut object);
        self.put(&object);
    }

    /// Deletes an object as a user does: a bound pod is given its grace period first.
    ///
    /// # Errors
    /// The object is not there.
    pub fn user_deletes<K: ListableResource>(
        &self,
        namespace: Option<&str>,
        name: &str,
        grace_s: Option<i64>,
    ) -> Result<(), ApiError> {
        let body = json!({ "gracePeriodSeconds": grace_s });
        self.answer(Method::Delete, &path(&target::<K>(namespace, Some(name))), &[], body).map(drop)
    }

    /// Takes an object away at once, as etcd restored without it.
    pub fn vanish<K: ListableResource>(&self, namespace: Option<&str>, name: &str) {
        let target = target::<K>(namespace, Some(name));
        self.store(|s| s.vanish(&target));
    }

    /// Waits until the server is in a wanted state.
    ///
    /// # Panics
    /// After an hour of tokio's clock.
    pub async fn until(&self, wanted: impl Fn(&Self) -> bool) {
        let mut changed = self.changes();
        let wait = async {
            loop {
                changed.borrow_and_update();
                if wanted(self) {
                    return;
                }
                // The sender lives in `self`.
                let _ = changed.changed().await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "the API server never came to the wanted state");
    }
}
