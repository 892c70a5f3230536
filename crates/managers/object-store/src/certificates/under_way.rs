//! What is under way for certificates of pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use actor::SpawnHandle;
use model::k8s_openapi::api::certificates::v1beta1::PodCertificateRequest;
use model::object::ObjectRef;

/// What this generation of the actor knows of certificates; the records stand in the cache.
#[derive(Debug, Default)]
pub(crate) struct Certificates {
    /// Requests of this node, by namespace and name.
    pub(crate) requests: BTreeMap<(String, String), Arc<PodCertificateRequest>>,
    /// What is under way for each: a request that is being made, or the wait for the next look.
    pub(crate) under_way: BTreeMap<ObjectRef, UnderWay>,
    /// The wait for the next step of the requests.
    pub(crate) following: Option<SpawnHandle>,
}

#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    /// The wait for the next look.
    pub(crate) look: Option<SpawnHandle>,
    /// A request is being made.
    pub(crate) asking: Option<SpawnHandle>,
    /// Requests that could not be made, one after the other.
    pub(crate) failures: u32,
}
