//! What `docker save` writes: a list of images, a file for each layer.

use serde::Deserialize;

use super::archive::{Archive, Found};
use crate::digest::Digest;
use crate::error::StoreError;
use crate::oci::{Descriptor, DocumentError, Manifest};
use image_pull::reference::Reference;

/// An entry of `manifest.json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Saved {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    #[serde(default)]
    layers: Option<Vec<String>>,
}

impl Saved {
    /// The list, where the archive has one.
    pub(super) fn read(archive: &Archive) -> Result<Option<Vec<Self>>, StoreError> {
        if !archive.has("manifest.json") {
            return Ok(None);
        }
        let text = archive.document(&archive.member("manifest.json")?)?;
        let list = serde_json::from_slice(&text);
        Ok(list.map_err(|e| DocumentError::Json(format!("manifest.json: {e}")))?)
    }

    /// Whether it is the image with this configuration.
    pub(super) fn is_of(&self, config: &Digest) -> bool {
        self.config.contains(&config.hex())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let tags = self.repo_tags.iter().flatten();
        tags.filter_map(|tag| Some(Reference::parse(tag).ok()?.to_string()))
    }
}

pub(super) fn read(archive: &Archive) -> Result<Vec<Found>, StoreError> {
    let neither = || {
        let why = "the archive holds no images: it has neither an index.json (an OCI layout) nor a manifest.json (docker save)";
        StoreError::Archive(why.to_owned())
    };
    let list = Saved::read(archive)?.ok_or_else(neither)?;
    list.iter().map(|saved| image(archive, saved)).collect()
}

fn image(archive: &Archive, saved: &Saved) -> Result<Found, StoreError> {
    let config = archive.document(&archive.member(&saved.config)?)?;
    let describe = |digest, size| Descriptor {
        media_type: String::new(),
        digest,
        size,
        platform: None,
        annotations: Default::default(),
    };
    let members = saved.layers.iter().flatten().map(|name| archive.member(name));
    let layers = members.collect::<Result<Vec<_>, _>>()?;
    let described = layers.iter().map(|m| Ok(describe(archive.digest(m)?, m.size)));
    let manifest = Manifest {
        config: describe(Digest::of(&config), config.len() as u64),
        layers: described.collect::<Result<_, StoreError>>()?,
    };
    Ok(Found { manifest, config, documents: Vec::new(), names: saved.names().collect(), digest: None, layers })
}
