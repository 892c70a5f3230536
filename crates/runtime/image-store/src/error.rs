//! What goes wrong with the store.

use std::io;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::held::Held;
use crate::oci::DocumentError;

/// Why the store did not do something.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk refused.
    #[error("cannot {what} {path:?}: {source}")]
    Disk {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// Somebody else writes.
    #[error(transparent)]
    Held(#[from] Held),
    /// Content is not what its name says.
    #[error("content has the digest {found}, not {promised}")]
    Digest {
        /// Its name.
        promised: Digest,
        /// What it is.
        found: Digest,
    },
    /// Content is longer or shorter than was said.
    #[error("{digest} has {found} bytes, not {promised}")]
    Size {
        /// Which content.
        digest: Digest,
        /// What was said.
        promised: u64,
        /// What it is.
        found: u64,
    },
    /// A document is no image that can run here.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A layer cannot be unpacked.
    #[error("layer {layer}: {why}")]
    Layer {
        /// By its digest as it is sent.
        layer: Digest,
        /// Why.
        why: String,
        /// Whether the layer itself is at fault, and would be again.
        refused: bool,
    },
    /// An image that was just to be used is not whole.
    #[error("image {image} lacks its {what}; pull it again")]
    Incomplete {
        /// Its id.
        image: Digest,
        /// What is not there.
        what: String,
    },
    /// No such image.
    #[error("no image {0:?}; `bosun image ls` lists those that are here")]
    NoImage(String),
    /// Several images begin so.
    #[error("{0:?} is the beginning of several images' ids: write more of it")]
    Several(String),
    /// No name of an image.
    #[error("{0:?}: {1}")]
    Name(String, String),
    /// An archive of images that cannot be read.
    #[error("{0}")]
    Archive(String),
    /// A name that no file can have.
    #[error("{0:?} cannot be the name of a lease's holder: letters, digits, `.`, `_` and `-` can, up to 200")]
    Holder(String),
}

impl StoreError {
    pub(crate) fn disk(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Disk { what, path, source }
    }

    /// Whether the disk has no room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Disk { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    }
}

/// An error with all that caused it, joined by `": "`.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
