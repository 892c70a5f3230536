//! The images of the node's own store, pulled from registries.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use container_spec::ImageProcess;
use cri_api::v1;
use image_store::{Image, ImageStore, StoreError, chain};
use registry::{Credentials, Progress, Puller, Request, Settings};

use super::{ImageError, ImageView, Images};
use crate::blocking::{Blocking, Class};
use crate::error::RuntimeError;

/// How long a removal waits for other processes that change the store.
const WAIT: Duration = Duration::from_secs(60);

/// The store, and what fills it.
#[derive(Clone, Debug)]
pub struct StoreImages {
    store: ImageStore,
    puller: Puller,
    blocking: Blocking,
}

impl StoreImages {
    /// Opens the store in `root`; `hosts` is the folder of `hosts.toml` files, as containerd's `config_path`.
    ///
    /// # Errors
    /// The disk refuses.
    pub async fn open(root: PathBuf, hosts: Option<PathBuf>) -> Result<Self, RuntimeError> {
        let blocking = Blocking::new();
        // All layers are looked at.
        let open = move || ImageStore::open(&root).map_err(|e| RuntimeError::Refused(chain(&e)));
        let store = blocking.run(Class::Images, open).await?;
        let settings = Settings { hosts_dir: hosts, ..Settings::default() };
        Ok(Self { puller: Puller::new(store.clone(), settings), store, blocking })
    }

    async fn wait_for<T: Send + 'static>(
        &self,
        name: &str,
        call: impl FnOnce(&ImageStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, ImageError> {
        let (store, named) = (self.store.clone(), name.to_owned());
        let done = self.blocking.run(Class::Images, move || Ok(call(&store).map_err(|e| failed(&named, &e))?)).await;
        done.map_err(|e| match e {
            RuntimeError::Image(e) => e,
            ending => failed(name, &ending),
        })
    }

    fn image(&self, id: &str) -> Result<Image, ImageError> {
        let found = self.store.resolve(id).map_err(|e| failed(id, &e))?;
        found.ok_or_else(|| ImageError::NotFound(id.to_owned()))
    }
}

fn failed(name: &str, error: &dyn std::error::Error) -> ImageError {
    ImageError::Failed { name: name.to_owned(), reason: chain(error) }
}

fn view(image: Image) -> ImageView {
    let defaults = image.config.config.clone();
    ImageView {
        id: image.id.to_string(),
        repo_tags: image.repo_tags,
        repo_digests: image.repo_digests,
        size: image.size_bytes,
        pinned: image.pinned,
        process: ImageProcess {
            entrypoint: defaults.entrypoint,
            cmd: defaults.cmd,
            env: defaults.env,
            working_dir: defaults.working_dir,
            user: defaults.user,
        },
        stop_signal: defaults.stop_signal,
    }
}

/// What a kubelet sends with a pull; of several kinds the most exact one counts, as in containerd.
fn credentials(auth: v1::AuthConfig) -> Option<Credentials> {
    if !auth.username.is_empty() {
        return Some(Credentials::Password { username: auth.username, password: auth.password });
    }
    if !auth.identity_token.is_empty() {
        return Some(Credentials::IdentityToken(auth.identity_token));
    }
    (!auth.registry_token.is_empty()).then_some(Credentials::RegistryToken(auth.registry_token))
}

#[async_trait]
impl Images for StoreImages {
    fn resolve(&self, reference: &str) -> Result<Option<ImageView>, ImageError> {
        Ok(self.store.resolve(reference).map_err(|e| failed(reference, &e))?.map(view))
    }

    fn lowers(&self, image: &ImageView) -> Result<Vec<PathBuf>, ImageError> {
        // Short ones: the options of a mount have one page.
        let lowers = self.store.short_lowers(&self.image(&image.id)?).map_err(|e| failed(&image.id, &e))?;
        Ok(lowers.names.iter().map(|name| lowers.folder.join(name)).collect())
    }

    fn hold(&self, image: &ImageView, volumes: &[&ImageView], holder: &str) -> Result<(), ImageError> {
        let image = self.image(&image.id)?;
        let volumes: Vec<Image> = volumes.iter().map(|v| self.image(&v.id)).collect::<Result<_, _>>()?;
        self.store.lease_with_volumes(&image, &volumes, holder).map(drop).map_err(|e| failed(&image.id.to_string(), &e))
    }

    fn release(&self, holder: &str) -> Result<(), ImageError> {
        self.store.release(holder).map(drop).map_err(|e| failed(holder, &e))
    }

    fn list(&self) -> Result<Vec<ImageView>, ImageError> {
        Ok(self.store.list().map_err(|e| failed("", &e))?.into_iter().map(view).collect())
    }

    async fn pull(&self, reference: &str, auth: Option<v1::AuthConfig>) -> Result<String, ImageError> {
        let credentials = auth.and_then(credentials);
        let request = Request { image: reference.to_owned(), credentials, pinned: false };
        let image = self.puller.pull(&request, &Progress::default()).await;
        let image = image.map_err(|e| match e.is_not_found() {
            true => ImageError::Nowhere { name: reference.to_owned(), reason: e.to_string() },
            false => failed(reference, &e),
        });
        Ok(image?.id.to_string())
    }

    async fn remove(&self, reference: &str) -> Result<(), ImageError> {
        let name = reference.to_owned();
        let removed = self.wait_for(reference, move |store| match store.remove(&name, WAIT) {
            Err(StoreError::NoImage(_)) => Ok(()),
            other => other.map(drop),
        });
        removed.await
    }

    async fn usage(&self) -> Result<(PathBuf, u64, u64), ImageError> {
        let usage = self.wait_for("", ImageStore::usage).await?;
        Ok((self.store.root().to_owned(), usage.bytes, usage.inodes))
    }
}
