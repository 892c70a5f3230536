//! Writes of mirror pods to the API server.

use std::sync::Arc;

use model::core::Pod;
use ports::api::{ApiError, ApiExt, ApiServer, Preconditions};

/// What is written for one mirror pod: the old one is deleted, then the new one is created.
#[derive(Debug)]
pub(crate) struct MirrorWrite {
    pub(crate) old: Option<Arc<Pod>>,
    pub(crate) new: Option<Pod>,
}

/// How a write left the mirror pod.
#[derive(Debug)]
pub(crate) enum Written {
    /// The API server has this one.
    Created(Arc<Pod>),
    /// It has none.
    Deleted,
}

impl MirrorWrite {
    pub(crate) async fn run(self, api: &dyn ApiServer) -> Result<Written, ApiError> {
        if let Some(old) = &self.old {
            delete(api, old).await?;
        }
        match &self.new {
            Some(new) => create(api, new).await.map(|made| Written::Created(Arc::new(made))),
            None => Ok(Written::Deleted),
        }
    }
}

/// Deletes exactly this object, at once.
async fn delete(api: &dyn ApiServer, mirror: &Pod) -> Result<(), ApiError> {
    let uid = mirror.metadata.uid.clone().filter(|uid| !uid.is_empty());
    let when = Preconditions { uid, grace_s: Some(0) };
    let name = model::pod::name(mirror);
    match api.delete::<Pod>(Some(model::pod::namespace(mirror)), name, when).await {
        Ok(()) => tracing::info!(pod = name, "mirror pod removed"),
        Err(e) if e.is_not_found() || e.is_conflict() => {}
        Err(e) => return Err(e),
    }
    Ok(())
}

async fn create(api: &dyn ApiServer, mirror: &Pod) -> Result<Pod, ApiError> {
    let (namespace, name) = (Some(model::pod::namespace(mirror)), model::pod::name(mirror));
    match api.create(namespace, mirror).await {
        Err(error) if error.is_already_exists() => {
            let found: Pod = api.get(namespace, name).await?;
            // Somebody's own pod has the name: it is not ours to remove.
            if model::pod::is_mirror(&found) { Ok(found) } else { Err(error) }
        }
        other => other,
    }
}
