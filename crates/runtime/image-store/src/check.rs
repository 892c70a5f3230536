//! After a crash or power cut: what is half-written goes, what is damaged is set aside, nothing else is touched.

use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::error::StoreError;
use crate::files;
use crate::held::Held;
use crate::record::{LayerInfo, Record};

/// What opening a store found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Things that somebody had begun to write or to remove, which are gone now.
    pub unfinished: Vec<PathBuf>,
    /// Records that cannot be read or whose image is not whole, with the reason. They have the ending `.damaged` now.
    pub set_aside: Vec<(PathBuf, String)>,
    /// Who writes, so that nothing was checked.
    pub left_to: Option<Held>,
}

pub(crate) fn check(root: &Path) -> Result<Checked, StoreError> {
    let mut checked = Checked { unfinished: sweep(root)?, ..Checked::default() };
    let images = root.join("images");
    for name in files::names(&images)?.into_iter().filter(|n| n.ends_with(".json")) {
        let path = images.join(&name);
        if let Some(why) = damage(root, &path, &name)? {
            let aside = path.with_extension("damaged");
            files::rename("set aside", &path, &aside)?;
            files::sync_folder(&images)?;
            tracing::warn!(record = %path.display(), why, "an image is not whole and has to be pulled again");
            checked.set_aside.push((path, why));
        }
    }
    Ok(checked)
}

/// Takes away what is unfinished. Only for who is the only writer.
pub(crate) fn sweep(root: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut gone = Vec::new();
    for folder in ["blobs/sha256", "ingest", "images", "layers", "leases"] {
        let folder = root.join(folder);
        for name in files::names(&folder)?.into_iter().filter(|n| files::is_unfinished(n)) {
            let path = folder.join(name);
            match files::is_folder(&path) {
                true => files::remove_tree(&path)?,
                false => drop(files::remove_file(&path)?),
            }
            gone.push(path);
        }
    }
    Ok(gone)
}

/// Why a record is of no use.
fn damage(root: &Path, path: &Path, name: &str) -> Result<Option<String>, StoreError> {
    let Some(record) = read_record(path)? else { return Ok(Some("its record cannot be read".to_owned())) };
    if name.strip_suffix(".json") != Some(record.id.hex().as_str()) {
        return Ok(Some("its record has another image's name".to_owned()));
    }
    let config = files::read(&root.join("blobs/sha256").join(record.id.hex()))?;
    if config.is_none_or(|text| Digest::of(&text) != record.id) {
        return Ok(Some("its configuration is missing or damaged".to_owned()));
    }
    for layer in &record.layers {
        let folder = root.join("layers").join(layer.chain_id.hex());
        if !files::is_folder(&folder.join("diff")) || read_info(&folder)?.is_none() {
            return Ok(Some(format!("its layer {} is missing", layer.digest)));
        }
    }
    Ok(None)
}

/// `None`: there is none that can be read.
pub(crate) fn read_record(path: &Path) -> Result<Option<Record>, StoreError> {
    Ok(files::read(path)?.and_then(|text| serde_json::from_slice(&text).ok()))
}

/// `None`: there is none that can be read.
pub(crate) fn read_info(layer: &Path) -> Result<Option<LayerInfo>, StoreError> {
    let path = layer.join("info.json");
    Ok(files::read(&path)?.and_then(|text| serde_json::from_slice(&text).ok()))
}
