//! The image half.

use async_trait::async_trait;
use cri_api::v1;
use ports::runtime::{ImageService, RuntimeResult};

use super::{CriClient, call, check};
use crate::measure::counted;

#[async_trait]
impl ImageService for CriClient {
    async fn list_images(&self, request: v1::ListImagesRequest) -> RuntimeResult<v1::ListImagesResponse> {
        counted("list_images", call(Some(self.deadlines.base()), self.images.clone().list_images(request))).await
    }

    async fn image_status(&self, request: v1::ImageStatusRequest) -> RuntimeResult<v1::ImageStatusResponse> {
        counted("image_status", async {
            let answer = call(Some(self.deadlines.base()), self.images.clone().image_status(request)).await?;
            if let Some(image) = &answer.image {
                check::image(image)?;
            }
            Ok(answer)
        })
        .await
    }

    async fn pull_image(&self, request: v1::PullImageRequest) -> RuntimeResult<v1::PullImageResponse> {
        counted("pull_image", async {
            let name = request.image.as_ref().map(|i| i.image.clone()).unwrap_or_default();
            let answer = call(None, self.images.clone().pull_image(request)).await?;
            check::image_ref(&answer.image_ref, &name)?;
            Ok(answer)
        })
        .await
    }

    async fn remove_image(&self, request: v1::RemoveImageRequest) -> RuntimeResult<()> {
        counted("remove_image", async {
            call(Some(self.deadlines.base()), self.images.clone().remove_image(request)).await.map(drop)
        })
        .await
    }

    async fn image_fs_info(&self) -> RuntimeResult<v1::ImageFsInfoResponse> {
        counted(
            "image_fs_info",
            call(Some(self.deadlines.base()), self.images.clone().image_fs_info(v1::ImageFsInfoRequest {})),
        )
        .await
    }
}
