//! CRI `ImageService` over whatever holds images.

use std::sync::Arc;

use cri_api::v1;
use tonic::{Request, Response, Status};

use super::{Answer, NoStream, missing, unimplemented};
use crate::blocking::Class;
use crate::cri::image_service_server::ImageService;
use crate::error::RuntimeError;
use crate::images::{ImageError, ImageView, Images};
use crate::runtime::Runtime;

/// What answers about images.
pub(crate) struct ImageApi(pub(crate) Arc<Runtime>);

impl ImageApi {
    /// Where a disk may be waited for.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Images) -> Result<T, ImageError> + Send + 'static,
    ) -> Result<T, Status> {
        let images = Arc::clone(&self.0.images);
        Ok(self.0.blocking.run(Class::Images, move || Ok(question(&*images)?)).await?)
    }
}

fn item(image: ImageView) -> v1::Image {
    let user = image.process.user.split(':').next().unwrap_or_default();
    let uid = user.parse().ok().map(|value| v1::Int64Value { value });
    let username = if uid.is_none() { user.to_owned() } else { String::new() };
    v1::Image {
        id: image.id,
        repo_tags: image.repo_tags,
        repo_digests: image.repo_digests,
        size: image.size,
        uid,
        username,
        spec: None,
        pinned: image.pinned,
    }
}

fn name(spec: Option<v1::ImageSpec>) -> Result<String, Status> {
    spec.map(|s| s.image).filter(|i| !i.is_empty()).ok_or_else(|| missing("image"))
}

#[tonic::async_trait]
impl ImageService for ImageApi {
    async fn list_images(&self, r: Request<v1::ListImagesRequest>) -> Answer<v1::ListImagesResponse> {
        let filter = r.into_inner().filter.and_then(|f| f.image).map(|i| i.image).filter(|i| !i.is_empty());
        let found = self.ask(move |images| match filter {
            Some(name) => Ok(images.resolve(&name)?.into_iter().collect()),
            None => images.list(),
        });
        let found: Vec<ImageView> = found.await?;
        Ok(Response::new(v1::ListImagesResponse { images: found.into_iter().map(item).collect() }))
    }

    async fn image_status(&self, r: Request<v1::ImageStatusRequest>) -> Answer<v1::ImageStatusResponse> {
        let name = name(r.into_inner().image)?;
        let image = self.ask(move |images| images.resolve(&name)).await?.map(item);
        Ok(Response::new(v1::ImageStatusResponse { image, ..v1::ImageStatusResponse::default() }))
    }

    async fn pull_image(&self, r: Request<v1::PullImageRequest>) -> Answer<v1::PullImageResponse> {
        let r = r.into_inner();
        let pulled = self.0.images.pull(&name(r.image)?, r.auth).await;
        Ok(Response::new(v1::PullImageResponse { image_ref: pulled.map_err(RuntimeError::from)? }))
    }

    async fn remove_image(&self, r: Request<v1::RemoveImageRequest>) -> Answer<v1::RemoveImageResponse> {
        self.0.images.remove(&name(r.into_inner().image)?).await.map_err(RuntimeError::from)?;
        Ok(Response::new(v1::RemoveImageResponse {}))
    }

    async fn image_fs_info(&self, _: Request<v1::ImageFsInfoRequest>) -> Answer<v1::ImageFsInfoResponse> {
        let (folder, bytes, inodes) = self.0.images.usage().await.map_err(RuntimeError::from)?;
        let usage = |mountpoint: String, bytes, inodes| v1::FilesystemUsage {
            timestamp: pod_supervisor::now(),
            fs_id: Some(v1::FilesystemIdentifier { mountpoint }),
            used_bytes: Some(v1::UInt64Value { value: bytes }),
            inodes_used: Some(v1::UInt64Value { value: inodes }),
        };
        let images = usage(folder.to_string_lossy().into_owned(), bytes, inodes);
        Ok(Response::new(v1::ImageFsInfoResponse {
            image_filesystems: vec![images.clone()],
            container_filesystems: vec![images],
        }))
    }

    type StreamImagesStream = NoStream<v1::StreamImagesResponse>;

    async fn stream_images(&self, _: Request<v1::StreamImagesRequest>) -> Answer<Self::StreamImagesStream> {
        unimplemented("StreamImages")
    }
}
