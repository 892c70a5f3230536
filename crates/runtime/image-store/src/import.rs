//! Archives of images: OCI layouts, and what `docker save` writes.

use std::fs::File;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use image_pull::reference::Reference;
use layer_unpack::Limits;

use self::archive::{Archive, Found};
use crate::catalogue::Image;
use crate::commit::{Draft, LayerOf};
use crate::digest::Digest;
use crate::error::StoreError;
use crate::oci::{ImageConfig, Platform};
use crate::store::{ImageStore, Writing};

mod archive;
mod docker;
mod layout;

/// How an archive is taken in.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// A name instead of those in the archive; of one image only.
    pub name: Option<String>,
    /// The image for which machine.
    pub platform: Platform,
    /// What a layer may cost.
    pub limits: Limits,
    /// How long other processes that write are waited for.
    pub wait: Duration,
    /// Whether its images are never garbage.
    pub pinned: bool,
}

impl ImageStore {
    /// Takes the images of an archive in.
    ///
    /// # Errors
    /// It is none, an image in it is damaged or for another machine, or the disk refuses. Images before that one stay.
    pub fn import(&self, archive: File, options: &ImportOptions) -> Result<Vec<Image>, StoreError> {
        let writing = self.writing("import", options.wait)?;
        let archive = Archive::open(&writing, archive, &options.limits)?;
        let mut found = match archive.has("index.json") {
            true => layout::read(&archive, &options.platform)?,
            false => docker::read(&archive)?,
        };
        if let Some(name) = &options.name {
            let whole = Reference::parse(name).map_err(|e| StoreError::Name(name.clone(), e.to_string()))?;
            match found.as_mut_slice() {
                [one] => one.names = vec![whole.to_string()],
                many => {
                    return Err(StoreError::Archive(format!(
                        "the archive has {} images: one name cannot stand for them",
                        many.len()
                    )));
                }
            }
        }
        found.into_iter().map(|image| writing.take_image(&archive, image, options)).collect()
    }
}

impl Writing {
    fn take_image(&self, archive: &Archive, image: Found, options: &ImportOptions) -> Result<Image, StoreError> {
        let config = ImageConfig::parse(&image.config)?;
        let mut draft = Draft::new(&image.manifest, &config, &options.platform)?;
        self.put_document(&draft.id, &image.config)?;
        for (digest, text) in &image.documents {
            self.put_document(digest, text)?;
        }
        self.keep(draft.layers.iter().map(|l| l.chain_id));
        let mut new = Vec::new();
        for (layer, member) in draft.layers.iter().zip(&image.layers) {
            if self.store.has_layer(&layer.chain_id)? {
                continue;
            }
            archive.verified(member, &layer.digest)?;
            let of = LayerOf { digest: layer.digest, diff_id: layer.diff_id, chain_id: layer.chain_id };
            new.push(self.unpack(archive.section(member), of, &options.limits, &AtomicBool::new(false))?);
        }
        draft.documents = image.documents.iter().map(|(digest, _)| *digest).collect();
        draft.digests = image.digest.iter().flat_map(|d| repo_digests(&image.names, d)).collect();
        draft.names = image.names;
        draft.pinned = options.pinned;
        self.commit(draft, new)
    }
}

fn repo_digests(names: &[String], digest: &Digest) -> Vec<String> {
    let of = |name: &String| Reference::parse(name).ok().map(|r| format!("{}@{digest}", r.repository()));
    names.iter().filter_map(of).collect()
}
