//! Images that are folders: `<root>/<name>/rootfs` and, if it has more to say, `<root>/<name>/config.json` with `Entrypoint`,
//! `Cmd`, `Env`, `WorkingDir`, `User` and `StopSignal`. For tests and for trying things out: nothing is pulled or removed.

use std::fs;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use container_spec::ImageProcess;
use cri_api::v1;
use serde::Deserialize;

use super::{ImageError, ImageView, Images};

/// Folders as images.
#[derive(Clone, Debug)]
pub struct DirectoryImages {
    root: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Config {
    entrypoint: Vec<String>,
    cmd: Vec<String>,
    env: Vec<String>,
    working_dir: String,
    user: String,
    stop_signal: String,
}

impl DirectoryImages {
    /// The folders in `root`.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn rootfs(&self, name: &str) -> PathBuf {
        self.root.join(name).join("rootfs")
    }

    fn view(&self, name: &str) -> Option<ImageView> {
        if name.is_empty() || name.contains('/') || name.starts_with('.') || !self.rootfs(name).is_dir() {
            return None;
        }
        let config = match fs::read(self.root.join(name).join("config.json")) {
            Ok(text) => serde_json::from_slice::<Config>(&text).ok()?,
            Err(_) => Config::default(),
        };
        let Config { entrypoint, cmd, env, working_dir, user, stop_signal } = config;
        Some(ImageView {
            id: format!("directory:{name}"),
            repo_tags: vec![format!("{name}:latest")],
            pinned: true,
            process: ImageProcess { entrypoint, cmd, env, working_dir, user },
            stop_signal,
            ..ImageView::default()
        })
    }
}

const NOT_HERE: &str = "images are folders here: nothing is pulled or removed";

#[async_trait]
impl Images for DirectoryImages {
    fn resolve(&self, reference: &str) -> Result<Option<ImageView>, ImageError> {
        let name = reference.strip_prefix("directory:").unwrap_or(reference);
        Ok(self.view(name.strip_suffix(":latest").unwrap_or(name)))
    }

    fn lowers(&self, image: &ImageView) -> Result<Vec<PathBuf>, ImageError> {
        let name = image.id.strip_prefix("directory:").unwrap_or_default();
        let rootfs = self.rootfs(name);
        if rootfs.is_dir() { Ok(vec![rootfs]) } else { Err(ImageError::NotFound(image.id.clone())) }
    }

    fn hold(&self, _: &ImageView, _: &[&ImageView], _: &str) -> Result<(), ImageError> {
        Ok(()) // nobody removes them
    }

    fn release(&self, _: &str) -> Result<(), ImageError> {
        Ok(())
    }

    fn list(&self) -> Result<Vec<ImageView>, ImageError> {
        let names = fs::read_dir(&self.root).into_iter().flatten().flatten();
        Ok(names.filter_map(|e| self.view(e.file_name().to_str()?)).collect())
    }

    async fn pull(&self, reference: &str, _: Option<v1::AuthConfig>) -> Result<String, ImageError> {
        let found = self.resolve(reference)?.map(|image| image.id);
        found.ok_or_else(|| ImageError::Failed { name: reference.to_owned(), reason: NOT_HERE.to_owned() })
    }

    async fn remove(&self, reference: &str) -> Result<(), ImageError> {
        if self.resolve(reference)?.is_some() { Err(ImageError::Unsupported(NOT_HERE)) } else { Ok(()) }
    }

    async fn usage(&self) -> Result<(PathBuf, u64, u64), ImageError> {
        Ok((self.root.clone(), 0, 0)) // what is not ours is not counted
    }
}
