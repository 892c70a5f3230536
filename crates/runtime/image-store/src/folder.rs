//! Where things of a store are, and what they say.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::check;
use crate::digest::{ChainId, Digest};
use crate::error::StoreError;
use crate::files;
use crate::record::LayerInfo;

/// The folder of a store.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) root: PathBuf,
    /// What is known of layers, which never change.
    infos: Mutex<BTreeMap<ChainId, Arc<LayerInfo>>>,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Folder {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, infos: Mutex::default() }
    }

    pub(crate) fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs/sha256").join(digest.hex())
    }

    pub(crate) fn layer_path(&self, chain_id: &ChainId) -> PathBuf {
        self.root.join("layers").join(chain_id.hex())
    }

    pub(crate) fn record_path(&self, id: &Digest) -> PathBuf {
        self.root.join("images").join(format!("{}.json", id.hex()))
    }

    /// A document, if it is here and is what its name says.
    pub(crate) fn document(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let text = files::read(&self.blob_path(digest))?;
        Ok(text.filter(|text| Digest::of(text) == *digest))
    }

    /// `None`: the layer is not unpacked.
    pub(crate) fn layer_info(&self, chain_id: &ChainId) -> Result<Option<Arc<LayerInfo>>, StoreError> {
        let path = self.layer_path(chain_id);
        if !path.join("diff").is_dir() {
            locked(&self.infos).remove(chain_id);
            return Ok(None);
        }
        if let Some(known) = locked(&self.infos).get(chain_id) {
            return Ok(Some(known.clone()));
        }
        let Some(info) = check::read_info(&path)? else { return Ok(None) };
        let info = Arc::new(info);
        locked(&self.infos).insert(*chain_id, info.clone());
        Ok(Some(info))
    }

    /// A layer is being taken away.
    pub(crate) fn forget_layer(&self, chain_id: &ChainId) {
        locked(&self.infos).remove(chain_id);
    }
}
