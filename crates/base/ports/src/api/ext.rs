//! Typed requests on top of the two methods of [`ApiServer`].

use async_trait::async_trait;
use model::json::{FromJson, ToJson};
use model::k8s_openapi::{ListableResource, Metadata, Resource};

use super::{ApiError, ApiResult, ApiServer, Method, PatchKind, Preconditions, Request, Throttle};

/// Typed calls. `namespace` is `None` for cluster-wide kinds.
#[async_trait]
pub trait ApiExt: ApiServer {
    /// GET one object.
    async fn get<K: Object>(&self, namespace: Option<&str>, name: &str) -> ApiResult<K> {
        self.fetch(Request::to::<K>(Method::Get, namespace, Some(name))).await
    }

    /// POST a new object; answers with what the server stored.
    async fn create<K: Object>(&self, namespace: Option<&str>, object: &K) -> ApiResult<K> {
        self.fetch(Request::to::<K>(Method::Post, namespace, None).json(object)?).await
    }

    /// Strategic merge patch of the `status` sub-resource; answers with the object after it, or what `T` decodes of it.
    async fn patch_status<K: Object, T: FromJson>(
        &self,
        namespace: Option<&str>,
        name: &str,
        patch: &serde_json::Value,
        throttle: Throttle,
    ) -> ApiResult<T> {
        let request = Request::to::<K>(Method::Patch(PatchKind::Strategic), namespace, Some(name));
        self.fetch(request.status().throttle(throttle).json(patch)?).await
    }

    /// DELETE one object.
    async fn delete<K: Object>(&self, namespace: Option<&str>, name: &str, when: Preconditions) -> ApiResult<()> {
        let mut body = serde_json::json!({ "apiVersion": "v1", "kind": "DeleteOptions" });
        if let Some(grace) = when.grace_s {
            body["gracePeriodSeconds"] = grace.into();
        }
        if let Some(uid) = when.uid {
            body["preconditions"] = serde_json::json!({ "uid": uid });
        }
        let request = Request::to::<K>(Method::Delete, namespace, Some(name)).json(&body)?;
        self.call(request).await.map(drop)
    }

    /// Sends a request and decodes the answer.
    async fn fetch<T: FromJson>(&self, request: Request) -> ApiResult<T> {
        let body = self.call(request).await?;
        T::from_json(&body).map_err(|e| ApiError::Garbage { message: e.to_string() })
    }
}

impl<T: ApiServer + ?Sized> ApiExt for T {}

/// A kind of object that can be asked for.
pub trait Object: Resource + ListableResource + Metadata + FromJson + ToJson + Send + Sync {}
impl<K: Resource + ListableResource + Metadata + FromJson + ToJson + Send + Sync> Object for K {}

impl Request {
    /// A request to a collection, or to one object in it (`name`). `namespace` is `None` for cluster-wide kinds.
    #[must_use]
    pub fn to<K: Resource>(method: Method, namespace: Option<&str>, name: Option<&str>) -> Self {
        Self::new(method, path::<K>(namespace, name))
    }

    /// The same to the `status` sub-resource.
    #[must_use]
    pub fn status(mut self) -> Self {
        self.path.push_str("/status");
        self
    }

    /// Sets the body.
    ///
    /// # Errors
    /// The value is none that JSON can hold.
    pub fn json(self, value: &impl ToJson) -> ApiResult<Self> {
        let body = value.to_json();
        Ok(self.body(body.map_err(|e| ApiError::Garbage { message: format!("cannot be sent: {e}") })?))
    }
}

/// Path of a collection, or of one object in it.
fn path<K: Resource>(namespace: Option<&str>, name: Option<&str>) -> String {
    let root = if K::GROUP.is_empty() { format!("/api/{}", K::VERSION) } else { format!("/apis/{}", K::API_VERSION) };
    let namespace = namespace.map(|n| format!("/namespaces/{n}")).unwrap_or_default();
    let name = name.map(|n| format!("/{n}")).unwrap_or_default();
    format!("{root}{namespace}/{}{name}", K::URL_PATH_SEGMENT)
}

#[cfg(test)]
mod tests {
    use model::core::{Node, Pod};
    use model::k8s_openapi::api::coordination::v1::Lease;

    use super::path;

    #[test]
    fn paths_are_those_of_the_api() {
        assert_eq!(path::<Pod>(Some("default"), Some("web")), "/api/v1/namespaces/default/pods/web");
        assert_eq!(path::<Node>(None, None), "/api/v1/nodes");
        assert_eq!(
            path::<Lease>(Some("kube-node-lease"), Some("n1")),
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"
        );
    }
}
