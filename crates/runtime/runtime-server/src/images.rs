//! What this crate needs of images. The store of images implements it; [`DirectoryImages`] takes plain folders instead.

use std::path::PathBuf;

use async_trait::async_trait;
use container_spec::ImageProcess;
use cri_api::v1;

mod directory;
mod store;

pub use directory::DirectoryImages;
pub use store::StoreImages;

/// Why an image cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It is not on this node.
    #[error("image {0:?} not found")]
    NotFound(String),
    /// No registry that may be asked for it has it.
    #[error("image {name:?} not found: {reason}")]
    Nowhere {
        /// What was asked for.
        name: String,
        /// What they said.
        reason: String,
    },
    /// Anything else.
    #[error("image {name:?}: {reason}")]
    Failed {
        /// What was asked for.
        name: String,
        /// Why not.
        reason: String,
    },
    /// This store does not do that.
    #[error("{0}")]
    Unsupported(&'static str),
}

/// One image of this node.
#[derive(Clone, Debug, Default)]
pub struct ImageView {
    /// `sha256:...` of its config.
    pub id: String,
    /// Names with tags.
    pub repo_tags: Vec<String>,
    /// Names with digests.
    pub repo_digests: Vec<String>,
    /// Bytes.
    pub size: u64,
    /// Never removed by garbage collection.
    pub pinned: bool,
    /// How its process is started.
    pub process: ImageProcess,
    /// `SIGTERM`, `15`; empty: SIGTERM.
    pub stop_signal: String,
}

/// The images of this node. What is no future may wait for a disk.
#[async_trait]
pub trait Images: Send + Sync + 'static {
    /// An image by name, digest or id.
    ///
    /// # Errors
    /// It cannot be known whether it is there.
    fn resolve(&self, reference: &str) -> Result<Option<ImageView>, ImageError>;

    /// Folders of its layers, the topmost first.
    ///
    /// # Errors
    /// One is missing.
    fn lowers(&self, image: &ImageView) -> Result<Vec<PathBuf>, ImageError>;

    /// Keeps an image, and those that `holder` (a container's id) has as volumes, as long as it is there, over restarts.
    ///
    /// # Errors
    /// It is not there any more, or this cannot be noted.
    fn hold(&self, image: &ImageView, volumes: &[&ImageView], holder: &str) -> Result<(), ImageError>;

    /// Undoes [`Images::hold`]; holding nothing is fine.
    ///
    /// # Errors
    /// This cannot be noted.
    fn release(&self, holder: &str) -> Result<(), ImageError>;

    /// All images.
    ///
    /// # Errors
    /// They cannot be read.
    fn list(&self) -> Result<Vec<ImageView>, ImageError>;

    /// Gets an image; answers its id.
    ///
    /// # Errors
    /// It cannot be had.
    async fn pull(&self, reference: &str, auth: Option<v1::AuthConfig>) -> Result<String, ImageError>;

    /// Removes an image; one that is not there is fine.
    ///
    /// # Errors
    /// It is in use, or cannot be removed.
    async fn remove(&self, reference: &str) -> Result<(), ImageError>;

    /// The folder of the store, its bytes and inodes.
    ///
    /// # Errors
    /// It cannot be read.
    async fn usage(&self) -> Result<(PathBuf, u64, u64), ImageError>;
}
