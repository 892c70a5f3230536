//! What the store takes of its disk.

use std::fs;

use crate::digest::Digest;
use crate::error::StoreError;
use crate::files;
use crate::store::ImageStore;

/// What the store takes, as `ImageFsInfo` of the CRI tells it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes: layers by what their files take in pages, the rest by length.
    pub bytes: u64,
    /// Files, directories and the like.
    pub inodes: u64,
}

impl ImageStore {
    /// Layers, documents and what is on its way. Of layers it is known since they were unpacked, so that nothing is walked.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn usage(&self) -> Result<Usage, StoreError> {
        let mut usage = Usage::default();
        for name in files::names(&self.root().join("layers"))? {
            let Some(id) = Digest::from_hex(&name) else { continue };
            if let Some(info) = self.inner.folder.layer_info(&id)? {
                usage.bytes += info.disk_bytes;
                usage.inodes += info.inodes + 2;
            }
        }
        for folder in ["blobs/sha256", "ingest", "images", "leases"] {
            let folder = self.root().join(folder);
            for name in files::names(&folder)? {
                // It may be gone again.
                let Ok(meta) = fs::symlink_metadata(folder.join(name)) else { continue };
                usage.bytes += meta.len();
                usage.inodes += 1;
            }
        }
        Ok(usage)
    }
}
