//! ClusterTrustBundles: which version the API server serves is asked when the first pod holds them, then they are followed.

use std::sync::Arc;
use std::time::Duration;

use actor::{Ctx, Deferred, Handler};
use contract::objects::{FetchTrustAnchors, ObjectError, ObjectVersion};
use model::object::ObjectRef;
use ports::api::{ApiError, ApiExt, ApiServer, Followed, Kind, Method, Request};
use tokio::time::timeout;

use super::{Follow, ObjectStore};
use crate::bundles::{NOT_SUPPORTED, Stage};
use crate::follow::Target;

/// How long a question waits for the first list.
const FIRST_LIST: Duration = Duration::from_secs(10);
/// The resource, as discovery names it.
const RESOURCE: &str = "clustertrustbundles";
/// Versions in the order in which they are wanted.
const VERSIONS: [(&str, Kind); 2] =
    [("v1beta1", Kind::ClusterTrustBundle), ("v1alpha1", Kind::ClusterTrustBundleAlpha)];

impl ObjectStore {
    /// The first pod that wants trust anchors.
    pub(super) fn gain_bundles(&mut self, ctx: &mut Ctx<Self>) {
        if self.config.trust_bundles && self.deps.api.is_some() {
            self.follows.insert(ObjectRef::trust_bundles(), Follow::default());
            self.ask_for_bundles(ctx);
        }
    }

    /// Asks what is served, unless that is known or being asked.
    fn ask_for_bundles(&mut self, ctx: &mut Ctx<Self>) {
        let Some(api) = self.deps.api.clone().filter(|_| self.bundles.must_ask()) else { return };
        self.bundles.at(Stage::Asked);
        let asked = ctx.run(async move { served(&*api).await }, |act, served, ctx| match served {
            Ok(Some(kind)) => act.follow(Target::TrustBundles(kind), ctx),
            Ok(None) => {
                tracing::info!("no version of the ClusterTrustBundle API is served");
                act.bundles.at(Stage::NotServed);
            }
            Err(error) => act.bundles.at(Stage::NotTold(error.to_string())),
        });
        if let Some(follow) = self.follows.get_mut(&ObjectRef::trust_bundles()) {
            follow.under_way = Some(asked);
        }
    }

    pub(super) fn apply_bundles(&mut self, step: Followed) {
        self.bundles.apply(step);
        let (object, row) = (ObjectRef::trust_bundles(), ObjectVersion { resource_version: self.bundles.version() });
        if self.versions.get(&object).is_none_or(|before| *before != row) {
            self.versions.post(object, Arc::new(row));
        }
    }
}

/// The newest version that the server serves.
async fn served(api: &dyn ApiServer) -> Result<Option<Kind>, ApiError> {
    for (version, kind) in VERSIONS {
        let path = format!("/apis/certificates.k8s.io/{version}");
        let found: serde_json::Value = match api.fetch(Request::new(Method::Get, path)).await {
            Err(e) if e.is_not_found() => continue,
            other => other?,
        };
        let mut resources = found.get("resources").and_then(serde_json::Value::as_array).into_iter().flatten();
        if resources.any(|r| r.get("name").and_then(serde_json::Value::as_str) == Some(RESOURCE)) {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}

impl Handler<FetchTrustAnchors> for ObjectStore {
    type Result = Deferred<Self, Result<Arc<str>, ObjectError>>;

    fn handle(&mut self, ask: FetchTrustAnchors, ctx: &mut Ctx<Self>) -> Self::Result {
        let object = ObjectRef::trust_bundles();
        if !self.config.trust_bundles || self.deps.api.is_none() {
            return Deferred::ready(Err(ObjectError::Failed(NOT_SUPPORTED.to_owned())));
        }
        if !self.holds.contains(&object) {
            return Deferred::ready(Err(crate::fetch::not_registered(&object)));
        }
        self.ask_for_bundles(ctx);
        let mut stage = self.bundles.watch();
        let known = async move { drop(timeout(FIRST_LIST, stage.wait_for(|s| *s != Stage::Asked)).await) };
        Deferred::then(known, move |this: &mut Self, (), _ctx| this.bundles.answer(&ask))
    }
}
