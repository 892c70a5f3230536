//! What no image and no lease needs.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::digest::Digest;
use crate::error::StoreError;
use crate::files;
use crate::folder::locked;
use crate::images::Removed;
use crate::lock::briefly;
use crate::short;
use crate::store::Writing;

/// How long a part of a layer is kept for who goes on with it.
const PART_LIFE: Duration = Duration::from_hours(24);

impl Writing {
    /// Takes away layers and documents that no image, no lease and nothing under way needs, and parts that nobody went on with for a day.
    ///
    /// # Errors
    /// A lease cannot be read, or the disk refuses. What was not taken away is the next time.
    pub fn collect(&self) -> Result<Removed, StoreError> {
        let store = &self.store;
        let mut removed = Removed::default();
        let mut gone: Vec<PathBuf> = Vec::new();
        {
            // Nobody begins to need anything meanwhile.
            let under_way = store.under_way();
            let _alone = briefly(store.root(), true)?;
            locked(&store.inner.catalogue).forget();
            let images = store.images()?;
            let mut layers: BTreeSet<Digest> = under_way.keys().copied().collect();
            let mut blobs = layers.clone();
            for record in images.records() {
                layers.extend(record.layers.iter().map(|l| l.chain_id));
                blobs.insert(record.id);
                blobs.extend(&record.documents);
            }
            layers.extend(store.leases()?.into_iter().flat_map(|l| l.chain));
            for (id, path) in named(&store.root().join("layers"))? {
                if !layers.contains(&id) {
                    removed.bytes += store.inner.folder.layer_info(&id)?.map_or(0, |i| i.disk_bytes);
                    removed.layers += 1;
                    let aside = files::beside(&path, files::GONE);
                    files::rename("remove", &path, &aside)?;
                    store.inner.folder.forget_layer(&id);
                    files::remove_file(&short::path(store.root(), &id))?;
                    gone.push(aside);
                }
            }
            for (digest, path) in named(&store.root().join("blobs/sha256"))? {
                if !blobs.contains(&digest) {
                    removed.bytes += fs::symlink_metadata(&path).map_or(0, |m| m.len());
                    files::remove_file(&path)?;
                }
            }
            removed.bytes += self.collect_parts(&blobs)?;
        }
        // The long part holds nobody up.
        for path in gone {
            files::remove_tree(&path)?;
        }
        Ok(removed)
    }

    fn collect_parts(&self, needed: &BTreeSet<Digest>) -> Result<u64, StoreError> {
        let folder = self.store.root().join("ingest");
        let mut bytes = 0;
        for name in files::names(&folder)? {
            let Some(digest) = name.strip_suffix(".part").and_then(Digest::from_hex) else { continue };
            let path = folder.join(name);
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            let age = meta.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            if !needed.contains(&digest) && age.is_some_and(|age| age > PART_LIFE) {
                files::remove_file(&path)?;
                bytes += meta.len();
            }
        }
        Ok(bytes)
    }
}

/// What a folder has that is named by a digest.
fn named(folder: &std::path::Path) -> Result<Vec<(Digest, PathBuf)>, StoreError> {
    let names = files::names(folder)?;
    Ok(names.into_iter().filter_map(|n| Some((Digest::from_hex(&n)?, folder.join(n)))).collect())
}
