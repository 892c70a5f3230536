//! API objects as tests write them.

use std::sync::Arc;

use model::core::{Pod, Secret};
use model::k8s_openapi::ByteString;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// An API object of its JSON.
///
/// # Panics
/// It is not of this kind.
#[must_use]
pub fn object<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("what a test writes is of its kind")
}

/// A pod of this UID. Its name is the UID too and its namespace `default`, unless the JSON says otherwise.
///
/// # Panics
/// The JSON is no pod's.
#[must_use]
pub fn pod(uid: &str, json: Value) -> Pod {
    let mut pod: Pod = object(json);
    let meta = &mut pod.metadata;
    meta.uid = Some(uid.to_owned());
    meta.name.get_or_insert_with(|| uid.to_owned());
    meta.namespace.get_or_insert_with(|| "default".to_owned());
    pod
}

/// A pull secret of namespace `default` with one user for one registry; the password is `p`.
#[must_use]
pub fn pull_secret(name: &str, registry: &str, user: &str) -> Arc<Secret> {
    let config = json!({"auths": {registry: {"username": user, "password": "p"}}}).to_string();
    let metadata = json!({"name": name, "namespace": "default", "uid": format!("uid-{name}")});
    let mut secret: Secret = object(json!({"metadata": metadata, "type": "kubernetes.io/dockerconfigjson"}));
    secret.data = Some([(".dockerconfigjson".to_owned(), ByteString(config.into_bytes()))].into());
    Arc::new(secret)
}
