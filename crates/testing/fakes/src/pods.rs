//! API objects as tests write them.

use model::core::Pod;
use serde::de::DeserializeOwned;
use serde_json::Value;

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
