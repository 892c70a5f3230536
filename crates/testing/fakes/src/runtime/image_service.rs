//! CRI `ImageService`.

use std::future::pending;
use std::sync::Arc;

use cri_api::v1;
use tokio::time::sleep;
use tonic::{Code, Request, Response, Status, async_trait};

use super::images::full_name;
use super::{FakeImage, Inner, Mutation, Pull, lock};
use crate::stubs::cri::image_service_server::ImageService;

pub(super) struct ImageApi(pub(super) Arc<Inner>);

fn name(image: Option<&v1::ImageSpec>) -> String {
    image.map(|i| i.image.clone()).unwrap_or_default()
}

#[async_trait]
impl ImageService for ImageApi {
    async fn list_images(&self, r: Request<v1::ListImagesRequest>) -> Result<Response<v1::ListImagesResponse>, Status> {
        let inner = Arc::clone(&self.0);
        let wanted = name(r.into_inner().filter.as_ref().and_then(|f| f.image.as_ref()));
        let effect = async move {
            let state = lock(&inner.state);
            let images = match wanted.as_str() {
                "" => state.images.all().map(FakeImage::to_cri).collect(),
                one => state.images.find(one).map(FakeImage::to_cri).into_iter().collect(),
            };
            Ok(v1::ListImagesResponse { images })
        };
        self.0.call("ListImages", String::new(), None, effect).await
    }

    async fn image_status(
        &self,
        r: Request<v1::ImageStatusRequest>,
    ) -> Result<Response<v1::ImageStatusResponse>, Status> {
        let inner = Arc::clone(&self.0);
        let image = name(r.into_inner().image.as_ref());
        let subject = image.clone();
        let effect = async move {
            let image = lock(&inner.state).images.find(&image).map(FakeImage::to_cri);
            Ok(v1::ImageStatusResponse { image, ..Default::default() })
        };
        self.0.call("ImageStatus", subject, None, effect).await
    }

    async fn pull_image(&self, r: Request<v1::PullImageRequest>) -> Result<Response<v1::PullImageResponse>, Status> {
        let inner = Arc::clone(&self.0);
        let r = r.into_inner();
        let subject = name(r.image.as_ref());
        let mutation = Mutation::from(r.clone());
        self.0.call("PullImage", subject, Some(mutation), async move { inner.pull(r).await }).await
    }

    async fn remove_image(
        &self,
        r: Request<v1::RemoveImageRequest>,
    ) -> Result<Response<v1::RemoveImageResponse>, Status> {
        let inner = Arc::clone(&self.0);
        let r = r.into_inner();
        let image = name(r.image.as_ref());
        let subject = image.clone();
        let effect = async move {
            lock(&inner.state).images.remove(&image);
            Ok(v1::RemoveImageResponse {})
        };
        self.0.call("RemoveImage", subject, Some(r.into()), effect).await
    }

    async fn image_fs_info(
        &self,
        _: Request<v1::ImageFsInfoRequest>,
    ) -> Result<Response<v1::ImageFsInfoResponse>, Status> {
        let inner = Arc::clone(&self.0);
        let effect = async move {
            if let Some(answer) = lock(&inner.script).image_fs.clone() {
                return Ok(answer);
            }
            let used = lock(&inner.state).images.all().map(|i| i.size).sum();
            let usage = v1::FilesystemUsage {
                timestamp: inner.now(),
                fs_id: Some(v1::FilesystemIdentifier { mountpoint: "/".to_owned() }),
                used_bytes: Some(v1::UInt64Value { value: used }),
                inodes_used: Some(v1::UInt64Value { value: 1 }),
            };
            Ok(v1::ImageFsInfoResponse { image_filesystems: vec![usage.clone()], container_filesystems: vec![usage] })
        };
        self.0.call("ImageFsInfo", String::new(), None, effect).await
    }

    type StreamImagesStream = super::service::NoStream<v1::StreamImagesResponse>;

    async fn stream_images(
        &self,
        _: Request<v1::StreamImagesRequest>,
    ) -> Result<Response<Self::StreamImagesStream>, Status> {
        Err(super::service::unknown("StreamImages"))
    }
}

impl Inner {
    async fn pull(&self, r: v1::PullImageRequest) -> Result<v1::PullImageResponse, Status> {
        let image = full_name(&name(r.image.as_ref()));
        let failed =
            |code, why: &str| Err(Status::new(code, format!("failed to pull and unpack image {image:?}: {why}")));
        let (pull, offered) = {
            let script = lock(&self.script);
            let pull = script.pulls.get(&image).or(script.other_pulls.as_ref()).cloned();
            (pull, script.offers.get(&image).cloned())
        };
        match pull {
            None => {
                return failed(Code::NotFound, &format!("failed to resolve reference {image:?}: {image}: not found"));
            }
            Some(Pull::Hangs) => pending().await,
            Some(Pull::Fails(takes, code, text)) => {
                sleep(takes).await;
                return Err(Status::new(code, text));
            }
            Some(Pull::NeedsAuth(takes, user, password)) => {
                sleep(takes).await;
                let auth = r.auth.unwrap_or_default();
                if (&auth.username, &auth.password) != (&user, &password) {
                    let why = format!("pull access denied for {:?}: authorization failed", auth.username);
                    return failed(Code::Unknown, &why);
                }
            }
            Some(Pull::Succeeds(takes)) => sleep(takes).await,
        }
        let image = offered.unwrap_or_else(|| FakeImage::new(&image));
        let image_ref = image.id.clone();
        let mut state = lock(&self.state);
        // A pull of what is there already changes nothing.
        if state.images.find(&image.name).is_none() {
            state.images.add(image);
        }
        Ok(v1::PullImageResponse { image_ref })
    }
}
