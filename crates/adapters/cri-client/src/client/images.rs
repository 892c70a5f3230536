//! The image half.

use async_trait::async_trait;
use cri_api::v1;
use ports::runtime::{ImageService, RuntimeResult};

use super::{CriClient, call, check};

#[async_trait]
impl ImageService for CriClient {
    async fn list_images(&self, request: v1::ListImagesRequest) -> RuntimeResult<v1::ListImagesResponse> {
        call(Some(self.deadlines.base()), self.images.clone().list_images(request)).await
    }

    async fn image_status(&self, request: v1::ImageStatusRequest) -> RuntimeResult<v1::ImageStatusResponse> {
        let answer = call(Some(self.deadlines.base()), self.images.clone().image_status(request)).await?;
        if let Some(image) = &answer.image {
            check::image(image)?;
        }
        Ok(answer)
    }

    async fn pull_image(&self, request: v1::PullImageRequest) -> RuntimeResult<v1::PullImageResponse> {
        let name = request.image.as_ref().map(|i| i.image.clone()).unwrap_or_default();
        let answer = call(None, self.images.clone().pull_image(request)).await?;
        check::image_ref(&answer.image_ref, &name)?;
        Ok(answer)
    }

    async fn remove_image(&self, request: v1::RemoveImageRequest) -> RuntimeResult<()> {
        call(Some(self.deadlines.base()), self.images.clone().remove_image(request)).await.map(drop)
    }

    async fn image_fs_info(&self) -> RuntimeResult<v1::ImageFsInfoResponse> {
        call(Some(self.deadlines.base()), self.images.clone().image_fs_info(v1::ImageFsInfoRequest {})).await
    }
}
