//! Layers and images become part of the store.

use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use layer_unpack::{Limits, UnpackError, Unpacked};

use crate::catalogue::Image;
use crate::digest::{ChainId, Digest, chain_ids};
use crate::error::{StoreError, chain};
use crate::files::{self, NEW};
use crate::ingest::part_path;
use crate::oci::{ImageConfig, Manifest, Platform};
use crate::record::{self, LayerInfo, LayerRecord, Record};
use crate::store::Writing;

/// Which layer is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerOf {
    /// As it was sent.
    pub digest: Digest,
    /// Without compression, by the configuration.
    pub diff_id: Digest,
    /// With all below it.
    pub chain_id: ChainId,
}

/// A layer that is unpacked and not part of the store yet: goes when it is dropped.
#[derive(Debug)]
pub struct NewLayer {
    folder: PathBuf,
    layer: LayerOf,
    unpacked: Unpacked,
    committed: bool,
}

/// An image that is to be part of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Digest of the configuration, which was put in as a document.
    pub id: Digest,
    /// Other documents of it that were put in: manifest, index.
    pub documents: Vec<Digest>,
    /// Whole names with tags; images that had them lose them.
    pub names: Vec<String>,
    /// Whole names with digests.
    pub digests: Vec<String>,
    /// Lowest first.
    pub layers: Vec<LayerRecord>,
    /// Never garbage.
    pub pinned: bool,
}

impl Draft {
    /// Of a manifest and its configuration, without names.
    ///
    /// # Errors
    /// They do not belong together, or run on another machine.
    pub fn new(manifest: &Manifest, config: &ImageConfig, wanted: &Platform) -> Result<Self, StoreError> {
        config.fits(manifest.layers.len(), wanted)?;
        let diff_ids = &config.rootfs.diff_ids;
        let layers = manifest.layers.iter().zip(diff_ids).zip(chain_ids(diff_ids));
        let layers = layers.map(|((sent, diff_id), chain_id)| LayerRecord {
            digest: sent.digest,
            size: sent.size,
            diff_id: *diff_id,
            chain_id,
        });
        let layers = layers.collect();
        Ok(Self {
            id: manifest.config.digest,
            documents: Vec::new(),
            names: Vec::new(),
            digests: Vec::new(),
            layers,
            pinned: false,
        })
    }
}

impl Drop for NewLayer {
    fn drop(&mut self) {
        if !self.committed
            && let Err(e) = files::remove_tree(&self.folder)
        {
            tracing::warn!(error = %e, "a layer that is of no use stays until the store is opened again");
        }
    }
}

impl Writing {
    /// Unpacks a layer beside the others. `stop` ends it early.
    ///
    /// # Errors
    /// The layer is refused, is another one than its image says, or the disk refuses.
    pub fn unpack(
        &self,
        source: impl Read,
        layer: LayerOf,
        limits: &Limits,
        stop: &AtomicBool,
    ) -> Result<NewLayer, StoreError> {
        let folder = files::beside(&self.store.inner.folder.layer_path(&layer.chain_id), NEW);
        let diff = folder.join("diff");
        files::make_folder(&folder, 0o700)?;
        // From here on it goes when it is dropped.
        let unpacked = Unpacked {
            diff_id: *layer.diff_id.bytes(),
            archive_bytes: 0,
            disk_bytes: 0,
            inodes: 0,
            implied: Vec::new(),
            skipped_xattrs: 0,
        };
        let mut new = NewLayer { folder, layer, unpacked, committed: false };
        files::make_folder(&diff, 0o755)?;
        let unpacked = layer_unpack::unpack(source, &diff, layer.diff_id.bytes(), limits, stop);
        new.unpacked = unpacked.map_err(|e| StoreError::Layer {
            layer: layer.digest,
            refused: !matches!(e, UnpackError::Disk { .. } | UnpackError::Source(_) | UnpackError::Stopped),
            why: chain(&e),
        })?;
        Ok(new)
    }

    /// Makes an image part of the store: its new layers first, all of it on disk before anything has its name, its record last.
    ///
    /// # Errors
    /// A layer is neither new nor here, or the disk refuses. What was made so far is kept for the next attempt or goes.
    pub fn commit(&self, draft: Draft, new: Vec<NewLayer>) -> Result<Image, StoreError> {
        let id = draft.id;
        self.keep([id].into_iter().chain(draft.documents.iter().copied()));
        self.keep(draft.layers.iter().map(|l| l.chain_id));
        self.settle(&draft, &new)?;
        if !new.is_empty() || self.unsynced.swap(false, Ordering::Relaxed) {
            files::sync_disk(self.store.root())?;
        }
        self.take_in(new)?;
        for layer in &draft.layers {
            if !self.store.has_layer(&layer.chain_id)? {
                return Err(StoreError::Incomplete { image: id, what: format!("layer {}", layer.digest) });
            }
        }
        files::sync_folder(&self.store.root().join("layers"))?;
        files::sync_folder(&self.store.root().join("blobs/sha256"))?;
        let parts: Vec<PathBuf> = draft.layers.iter().map(|l| part_path(self.store.root(), &l.digest)).collect();
        let image = self.record(draft)?;
        for part in parts {
            files::remove_file(&part)?;
        }
        Ok(image)
    }

    /// Gives new layers what they take from those below, lowest first, and their descriptions.
    fn settle(&self, draft: &Draft, new: &[NewLayer]) -> Result<(), StoreError> {
        let mut below: Vec<PathBuf> = Vec::new();
        for layer in &draft.layers {
            let made = new.iter().find(|n| n.layer.chain_id == layer.chain_id);
            let diff = match made {
                Some(made) => made.folder.join("diff"),
                None => self.store.inner.folder.layer_path(&layer.chain_id).join("diff"),
            };
            if let Some(made) = made {
                let settled = layer_unpack::settle(&diff, &made.unpacked.implied, &below);
                settled.map_err(|e| StoreError::Layer { layer: layer.digest, why: chain(&e), refused: false })?;
                let info = LayerInfo {
                    chain_id: layer.chain_id,
                    diff_id: layer.diff_id,
                    disk_bytes: made.unpacked.disk_bytes,
                    inodes: made.unpacked.inodes,
                    archive_bytes: made.unpacked.archive_bytes,
                };
                files::write_unsynced(&made.folder.join("info.json"), &record::text(&info))?;
            }
            below.insert(0, diff);
        }
        Ok(())
    }

    fn take_in(&self, new: Vec<NewLayer>) -> Result<(), StoreError> {
        // Two that bring the same layer do not name it at once.
        let _one_after_the_other = self.store.under_way();
        for mut layer in new {
            let to = self.store.inner.folder.layer_path(&layer.layer.chain_id);
            if self.store.has_layer(&layer.layer.chain_id)? {
                continue; // Somebody was quicker; ours goes.
            }
            if to.exists() {
                // What a damaged disk left of one.
                files::remove_tree(&to)?;
            }
            files::rename("name", &layer.folder, &to)?;
            layer.committed = true;
        }
        Ok(())
    }

    /// Writes the image's record over what was known of it, and takes its names from others.
    fn record(&self, draft: Draft) -> Result<Image, StoreError> {
        let catalogue = &mut *crate::folder::locked(&self.store.inner.catalogue);
        let known = catalogue.read(&self.store.inner.folder)?;
        let mut record = Record {
            id: draft.id,
            names: draft.names,
            digests: draft.digests,
            pinned: draft.pinned,
            changed_ns: now(),
            documents: draft.documents,
            layers: draft.layers,
        };
        if let Some(old) = known.record(&record.id) {
            merge(&mut record.names, &old.names);
            merge(&mut record.digests, &old.digests);
            merge(&mut record.documents, &old.documents);
            record.pinned |= old.pinned;
            record.changed_ns = record.changed_ns.max(old.changed_ns + 1);
        }
        let losing: Vec<Record> = known.losing(&record).collect();
        if let Some(latest) = losing.iter().map(|r| r.changed_ns).max() {
            record.changed_ns = record.changed_ns.max(latest + 1);
        }
        files::write(&self.store.inner.folder.record_path(&record.id), &record::text(&record))?;
        for mut loser in losing {
            loser.names.retain(|name| !record.names.contains(name));
            files::write(&self.store.inner.folder.record_path(&loser.id), &record::text(&loser))?;
        }
        catalogue.forget();
        let id = record.id;
        let images = catalogue.read(&self.store.inner.folder)?;
        images.image(&id).ok_or(StoreError::Incomplete { image: id, what: "record".to_owned() })
    }
}

fn merge<T: PartialEq + Clone>(into: &mut Vec<T>, from: &[T]) {
    for item in from {
        if !into.contains(item) {
            into.push(item.clone());
        }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
