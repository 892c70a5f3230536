//! Pulls that an earlier process began: where the image is here, that this node pulled it is put on record.

use cri_api::v1::ListImagesRequest;

use crate::deps::Tools;

/// Turns intents of interrupted pulls whose images are here into records.
pub(crate) async fn interrupted_pulls(tools: Tools) {
    tools.effects.hit("recover").await;
    let intents = tools.records(|r| r.intents()).await;
    if intents.is_empty() {
        return;
    }
    let images = match tools.deps.images.list_images(ListImagesRequest::default()).await {
        Ok(list) => list.images,
        Err(e) => {
            tracing::warn!(error = %e.go_text(), "images of interrupted pulls cannot be listed");
            return;
        }
    };
    let now = tools.now();
    tools.records(move |r| r.recover(&intents, &images, now)).await;
}
