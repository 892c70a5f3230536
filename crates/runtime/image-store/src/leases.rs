//! Who needs layers though their image may go.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::catalogue::Image;
use crate::digest::{ChainId, Digest};
use crate::error::StoreError;
use crate::files;
use crate::lock::briefly;
use crate::record;
use crate::store::ImageStore;

/// A container's hold on the layers it runs on: `leases/HOLDER.json`. It lasts until it is released, whoever dies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Who: a container's id.
    pub holder: String,
    /// The image that it was made from.
    pub image: Digest,
    /// The layers, lowest first; after its own those of its volumes.
    pub chain: Vec<ChainId>,
}

impl ImageStore {
    /// Holds an image's layers for a container, on disk before this returns. The same holder's earlier lease is replaced.
    ///
    /// # Errors
    /// As [`Self::lease_with_volumes`].
    pub fn lease(&self, image: &Image, holder: &str) -> Result<Lease, StoreError> {
        self.lease_with_volumes(image, &[], holder)
    }

    /// As [`Self::lease`]; `volumes` are images that the container has mounted, whose layers are held with its own.
    ///
    /// # Errors
    /// The layers are gone meanwhile, the holder's name cannot be a file's, or the disk refuses.
    pub fn lease_with_volumes(&self, image: &Image, volumes: &[Image], holder: &str) -> Result<Lease, StoreError> {
        let path = self.lease_path(holder)?;
        let mut chain = image.chain.clone();
        for layer in volumes.iter().flat_map(|v| &v.chain) {
            if !chain.contains(layer) {
                chain.push(*layer);
            }
        }
        let lease = Lease { holder: holder.to_owned(), image: image.id, chain };
        // Whoever collects garbage, here or in another process, looks at the leases while it holds these.
        let _collecting = (self.under_way(), briefly(self.root(), false)?);
        for layer in &lease.chain {
            if !self.has_layer(layer)? {
                return Err(StoreError::Incomplete { image: image.id, what: format!("layer {layer}") });
            }
        }
        files::write(&path, &record::text(&lease))?;
        Ok(lease)
    }

    /// Lets go. `false`: there was none.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn release(&self, holder: &str) -> Result<bool, StoreError> {
        let path = self.lease_path(holder)?;
        let was_there = files::remove_file(&path)?;
        files::sync_folder(&self.root().join("leases"))?;
        Ok(was_there)
    }

    /// All leases, by holder.
    ///
    /// # Errors
    /// One cannot be read: nothing may be collected before it is mended or released. Or the disk refuses.
    pub fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        let folder = self.root().join("leases");
        let mut leases = Vec::new();
        for name in files::names(&folder)?.into_iter().filter(|n| n.ends_with(".json") && !files::is_unfinished(n)) {
            let path = folder.join(name);
            // It may have been released meanwhile.
            let Some(text) = files::read(&path)? else { continue };
            let lease = serde_json::from_slice(&text);
            leases.push(lease.map_err(|e| StoreError::disk("understand", &path)(e.into()))?);
        }
        Ok(leases)
    }

    fn lease_path(&self, holder: &str) -> Result<PathBuf, StoreError> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let fine = !holder.is_empty() && holder.len() <= 200 && holder.bytes().all(fits) && !holder.starts_with('.');
        match fine {
            true => Ok(self.root().join("leases").join(format!("{holder}.json"))),
            false => Err(StoreError::Holder(holder.to_owned())),
        }
    }
}
