//! JSON of API objects, read and written in one place.
//!
//! Whatever crate asks serde for a `Pod` gets a reader of its own, 0.6 MB of program each, and six of them once stood in the
//! daemon. Objects are read and written by code that is compiled here, once per kind.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::certificates::{v1alpha1, v1beta1};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Event, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, VolumeAttachment};
use serde::de::DeserializeOwned;
use serde_json::{Error, Value};

/// Something that the API server sends, or the part of it that is needed.
pub trait FromJson: Sized {
    /// Reads one document.
    ///
    /// # Errors
    /// The text is no JSON, or a field has the wrong type; the error has line and column.
    fn from_json(text: &[u8]) -> Result<Self, Error>;
}

/// Something that the API server takes.
pub trait ToJson {
    /// Writes it, without spaces.
    ///
    /// # Errors
    /// A map key that is no string; kinds of the API have none.
    fn to_json(&self) -> Result<Vec<u8>, Error>;
}

macro_rules! kinds {
    ($($kind:ty),* $(,)?) => {$(
        impl FromJson for $kind {
            fn from_json(text: &[u8]) -> Result<Self, Error> {
                read(text)
            }
        }

        impl ToJson for $kind {
            fn to_json(&self) -> Result<Vec<u8>, Error> {
                serde_json::to_vec(self)
            }
        }
    )*};
}

kinds! {
    CSIDriver, CSINode, CertificateSigningRequest, ConfigMap, Event, Lease, Node, PersistentVolume, PersistentVolumeClaim, Pod,
    RuntimeClass, Secret, Service, ServiceAccount, Value, VolumeAttachment, v1alpha1::ClusterTrustBundle,
    v1beta1::ClusterTrustBundle, v1beta1::PodCertificateRequest,
}

/// What `object` is as JSON, its fields in the order of the alphabet. Twice the work of writing it: not for busy paths.
///
/// # Errors
/// As [`ToJson::to_json`].
pub fn value(object: &impl ToJson) -> Result<Value, Error> {
    read(&object.to_json()?)
}

/// Reads one document: for types of other crates that are [`FromJson`].
///
/// # Errors
/// As [`FromJson::from_json`].
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(text)
}
