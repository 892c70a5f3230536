//! The API server, as a node asks it (interfaces 9).
//!
//! The trait is small and object safe: one call and one followed selection. Typed helpers stand in [`ApiExt`], so that an
//! adapter, a fake and a fault injector each implement two methods. Throttling, connection reuse, credentials and the
//! list-and-watch engine (bookmarks, relist on 410, back-off) belong to the implementation.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use model::core::{ConfigMap, Node, Pod, Secret, Service};
use model::k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use model::k8s_openapi::api::certificates::v1alpha1;
use model::k8s_openapi::api::certificates::v1beta1::{
    ClusterTrustBundle, ClusterTrustBundleSpec, PodCertificateRequest,
};
use model::k8s_openapi::api::node::v1::RuntimeClass;
use model::k8s_openapi::api::storage::v1::CSIDriver;

mod error;
mod ext;
mod request;

pub use error::ApiError;
pub use ext::ApiExt;
pub use request::{DEFAULT_DEADLINE, Method, PatchKind, Preconditions, Request, Throttle};

/// Result of one call.
pub type ApiResult<T> = Result<T, ApiError>;

/// The API server.
#[async_trait]
pub trait ApiServer: Send + Sync + 'static {
    /// Sends one request and answers with the body of a 2xx answer.
    ///
    /// # Errors
    /// The server refused it, could not be reached, or did not answer within [`Request::deadline`].
    async fn call(&self, request: Request) -> ApiResult<Bytes>;

    /// Lists a selection and follows it for as long as the stream is held. Never ends by itself: failures are reported as
    /// [`Followed::Failed`] and retried with back-off.
    fn follow(&self, selection: Selection) -> BoxStream<'static, Followed>;
}

/// What is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Kind of object.
    pub kind: Kind,
    /// `None`: all namespaces, or a cluster-wide kind.
    pub namespace: Option<String>,
    /// E.g. `spec.nodeName=worker-1`; empty: everything.
    pub field_selector: String,
}

/// Kinds that can be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "named after the kinds")]
pub enum Kind {
    Pod,
    Node,
    Service,
    ConfigMap,
    Secret,
    RuntimeClass,
    CertificateSigningRequest,
    ClusterTrustBundle,
    /// Of `v1alpha1`, for servers that have no newer version; its objects are those of `v1beta1`.
    ClusterTrustBundleAlpha,
    PodCertificateRequest,
    CsiDriver,
}

/// One object of a followed kind.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "named after the kinds")]
pub enum Object {
    Pod(Arc<Pod>),
    Node(Arc<Node>),
    Service(Arc<Service>),
    ConfigMap(Arc<ConfigMap>),
    Secret(Arc<Secret>),
    RuntimeClass(Arc<RuntimeClass>),
    CertificateSigningRequest(Arc<CertificateSigningRequest>),
    ClusterTrustBundle(Arc<ClusterTrustBundle>),
    PodCertificateRequest(Arc<PodCertificateRequest>),
    CsiDriver(Arc<CSIDriver>),
}

impl Object {
    /// A bundle of `v1alpha1`, whose fields are those of `v1beta1`.
    #[must_use]
    pub fn of_alpha_bundle(bundle: Arc<v1alpha1::ClusterTrustBundle>) -> Self {
        let v1alpha1::ClusterTrustBundle { metadata, spec } = Arc::unwrap_or_clone(bundle);
        let spec = ClusterTrustBundleSpec { signer_name: spec.signer_name, trust_bundle: spec.trust_bundle };
        Self::ClusterTrustBundle(Arc::new(ClusterTrustBundle { metadata, spec }))
    }
}

/// A step of a followed selection.
#[derive(Clone, Debug, PartialEq)]
pub enum Followed {
    /// The whole selection, after the first list and after each relist: what is missing from it is gone.
    All(Vec<Object>),
    /// Added or changed.
    Applied(Object),
    /// Gone; the last state that was seen.
    Deleted(Object),
    /// The list or the watch failed; it is retried by itself. What was seen before still stands.
    Failed(ApiError),
}
