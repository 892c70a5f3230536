//! OCI layouts (OCI image-spec, image-layout.md), as `skopeo`, `buildah`, `ctr export` and Docker of today write them.

use serde::Deserialize;

use super::archive::{Archive, Found, blob_name};
use super::docker::Saved;
use crate::digest::Digest;
use crate::error::StoreError;
use crate::oci::{Descriptor, Document, DocumentError, Platform, choose};
use image_pull::reference::Reference;

/// Names of images in the annotations of an index, the better one first: containerd's is whole, OCI's may be a tag alone.
const NAMES: [&str; 2] = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];
/// Indexes within indexes.
const DEPTH: usize = 4;

#[derive(Deserialize)]
struct Top {
    manifests: Vec<Descriptor>,
}

pub(super) fn read(archive: &Archive, platform: &Platform) -> Result<Vec<Found>, StoreError> {
    let text = archive.document(&archive.member("index.json")?)?;
    let top: Top = serde_json::from_slice(&text).map_err(|e| DocumentError::Json(format!("index.json: {e}")))?;
    let saved = Saved::read(archive)?;
    let mut images: Vec<Found> = Vec::new();
    let mut last = None;
    for descriptor in &top.manifests {
        match image(archive, descriptor, platform) {
            Ok(mut found) => {
                let told = saved.iter().flatten().filter(|s| s.is_of(&found.manifest.config.digest));
                let told = told.flat_map(|s| s.names());
                found.names = names(descriptor).into_iter().chain(told).collect();
                found.names.dedup();
                // The same image under two names stands twice in an index.
                match images.iter_mut().find(|i| i.digest == found.digest) {
                    Some(known) => known.names.extend(found.names),
                    None => images.push(found),
                }
            }
            // One of several may be for another machine.
            Err(StoreError::Document(e @ DocumentError::NoPlatform { .. })) => last = Some(e),
            Err(e) => return Err(e),
        }
    }
    match (images.is_empty(), last) {
        (false, _) => Ok(images),
        (true, Some(e)) => Err(e.into()),
        (true, None) => Err(StoreError::Archive("the archive has no image".to_owned())),
    }
}

fn names(descriptor: &Descriptor) -> Vec<String> {
    let told = NAMES.iter().filter_map(|key| descriptor.annotations.get(*key));
    // A tag alone names nothing.
    let whole = told.filter(|name| name.contains(['/', ':']));
    whole.filter_map(|name| Some(Reference::parse(name).ok()?.to_string())).take(1).collect()
}

fn image(archive: &Archive, named: &Descriptor, platform: &Platform) -> Result<Found, StoreError> {
    let mut documents: Vec<(Digest, Vec<u8>)> = Vec::new();
    let mut at = named.clone();
    for _ in 0..DEPTH {
        let text = archive.blob(&at.digest)?;
        let document = Document::parse(&text, &at.media_type)?;
        documents.push((at.digest, text));
        match document {
            Document::Index(manifests) => at = choose(&manifests, platform)?.clone(),
            Document::Manifest(manifest) => {
                let layers = manifest.layers.iter().map(|l| archive.member(&blob_name(&l.digest)));
                return Ok(Found {
                    config: archive.blob(&manifest.config.digest)?,
                    layers: layers.collect::<Result<_, _>>()?,
                    manifest,
                    documents,
                    names: Vec::new(),
                    digest: Some(named.digest),
                });
            }
        }
    }
    Err(StoreError::Archive("indexes of the archive lie too deep within each other".to_owned()))
}
