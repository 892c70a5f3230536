//! Images are looked for, named and removed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use image_pull::reference::Reference;

use crate::catalogue::{Image, Images};
use crate::digest::Digest;
use crate::error::StoreError;
use crate::files;
use crate::folder::locked;
use crate::record::{self, Record};
use crate::store::{ImageStore, Writing};

/// What removing did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    /// Names that are gone.
    pub names: Vec<String>,
    /// The image, if it is gone.
    pub image: Option<Digest>,
    /// Layers that nobody needed any more.
    pub layers: u64,
    /// About what that gave back, bytes.
    pub bytes: u64,
}

impl ImageStore {
    pub(crate) fn images(&self) -> Result<Arc<Images>, StoreError> {
        locked(&self.inner.catalogue).read(&self.inner.folder)
    }

    /// The image of a name, an id or the beginning of one.
    ///
    /// # Errors
    /// Several ids begin so, or the disk refuses.
    pub fn resolve(&self, reference_or_id: &str) -> Result<Option<Image>, StoreError> {
        let images = self.images()?;
        Ok(images.find(reference_or_id)?.and_then(|id| images.image(&id)))
    }

    /// All images that are whole, by id.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn list(&self) -> Result<Vec<Image>, StoreError> {
        Ok(self.images()?.images().cloned().collect())
    }

    /// The folders of an image's layers, topmost first, as overlayfs' `lowerdir` has them.
    #[must_use]
    pub fn lowers(&self, image: &Image) -> Vec<PathBuf> {
        image.chain.iter().rev().map(|id| self.inner.folder.layer_path(id).join("diff")).collect()
    }

    /// Removes an image with all its names, then the layers that nobody needs. Those of containers stay, by their leases.
    ///
    /// # Errors
    /// There is no such image, another process writes for longer than `wait`, or the disk refuses.
    pub fn remove(&self, reference_or_id: &str, wait: Duration) -> Result<Removed, StoreError> {
        let writing = self.writing(&format!("remove {reference_or_id}"), wait)?;
        let removed = writing.forget(reference_or_id)?;
        let collected = writing.collect()?;
        Ok(Removed { layers: collected.layers, bytes: collected.bytes, ..removed })
    }

    /// Takes one name from an image; the last one takes the image with it.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    pub fn untag(&self, name: &str, wait: Duration) -> Result<Removed, StoreError> {
        let whole = Reference::parse(name).map(|r| r.to_string()).unwrap_or_default();
        let writing = self.writing(&format!("remove {name}"), wait)?;
        let taken = writing.update(&whole, |record| {
            let more = record.names.len() > 1 && record.names.contains(&whole);
            record.names.retain(|n| !more || *n != whole);
            more
        })?;
        drop(writing);
        match taken {
            true => Ok(Removed { names: vec![whole], ..Removed::default() }),
            false => self.remove(name, wait),
        }
    }

    /// Says whether an image may be garbage.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    pub fn pin(&self, reference_or_id: &str, pinned: bool, wait: Duration) -> Result<(), StoreError> {
        let writing = self.writing(&format!("pin {reference_or_id}"), wait)?;
        writing.update(reference_or_id, |record| record.pinned = pinned)
    }
}

impl Writing {
    /// Changes a record that was just read; nobody reads or writes one meanwhile.
    fn update<T>(&self, reference_or_id: &str, change: impl FnOnce(&mut Record) -> T) -> Result<T, StoreError> {
        let mut catalogue = locked(&self.store.inner.catalogue);
        let images = catalogue.read(&self.store.inner.folder)?;
        let found = images.find(reference_or_id)?.and_then(|id| images.record(&id));
        let mut record = found.ok_or_else(|| StoreError::NoImage(reference_or_id.to_owned()))?.clone();
        let result = change(&mut record);
        catalogue.forget();
        files::write(&self.store.inner.folder.record_path(&record.id), &record::text(&record))?;
        Ok(result)
    }

    fn forget(&self, reference_or_id: &str) -> Result<Removed, StoreError> {
        let images = self.store.images()?;
        let id = images.find(reference_or_id)?.ok_or_else(|| StoreError::NoImage(reference_or_id.to_owned()))?;
        let names = images.record(&id).map(|r| r.names.clone()).unwrap_or_default();
        let path = self.store.inner.folder.record_path(&id);
        let mut catalogue = locked(&self.store.inner.catalogue);
        catalogue.forget();
        files::remove_file(&path)?;
        files::sync_folder(&self.store.root().join("images"))?;
        Ok(Removed { names, image: Some(id), ..Removed::default() })
    }
}
