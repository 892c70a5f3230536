//! Short names of layers: options of a mount have one page of memory, which sixty long paths fill.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::catalogue::Image;
use crate::digest::ChainId;
use crate::error::StoreError;
use crate::store::ImageStore;

/// Digits of a chain id that are enough to tell a node's layers apart: of a billion layers two have the same with a chance of 1 to 40.
const DIGITS: usize = 16;

/// Layers by names that count from a folder: who mounts them goes there first (`chdir`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortLowers {
    /// The folder.
    pub folder: PathBuf,
    /// Topmost first; 17 bytes each with their colon, so that 240 layers fit.
    pub names: Vec<String>,
}

pub(crate) fn path(root: &Path, chain_id: &ChainId) -> PathBuf {
    root.join("l").join(name(chain_id))
}

fn name(chain_id: &ChainId) -> String {
    chain_id.hex()[..DIGITS].to_owned()
}

impl ImageStore {
    /// As [`lowers`](Self::lowers), by links in the folder `l` that are made where they are missing.
    ///
    /// # Errors
    /// The disk refuses, or two layers would have one name.
    pub fn short_lowers(&self, image: &Image) -> Result<ShortLowers, StoreError> {
        for chain_id in &image.chain {
            let link = path(self.root(), chain_id);
            let target = PathBuf::from(format!("../layers/{}/diff", chain_id.hex()));
            match symlink(&target, &link) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    let known = fs::read_link(&link).map_err(StoreError::disk("read", &link))?;
                    if known != target {
                        let taken = io::Error::other(format!("it stands for {}", known.display()));
                        return Err(StoreError::disk("name a layer by", &link)(taken));
                    }
                }
                other => other.map_err(StoreError::disk("make", &link))?,
            }
        }
        let names = image.chain.iter().rev().map(name).collect();
        Ok(ShortLowers { folder: self.root().join("l"), names })
    }
}
