//! What is written down about an image.

use serde::{Deserialize, Serialize};

use crate::digest::{ChainId, Digest};

/// One layer of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerRecord {
    /// As it was sent.
    pub digest: Digest,
    /// Bytes as it was sent.
    pub size: u64,
    /// Without compression.
    pub diff_id: Digest,
    /// With all below it: its folder's name.
    pub chain_id: ChainId,
}

/// `images/ID.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Digest of the configuration.
    pub(crate) id: Digest,
    /// Whole names with tags.
    pub(crate) names: Vec<String>,
    /// Whole names with digests.
    pub(crate) digests: Vec<String>,
    /// Never garbage.
    pub(crate) pinned: bool,
    /// When its names were given last: nanoseconds since the epoch. Of two images with a name, the later one has it.
    pub(crate) changed_ns: u64,
    /// Manifest, index: content that is kept beside the configuration.
    pub(crate) documents: Vec<Digest>,
    /// Lowest first.
    pub(crate) layers: Vec<LayerRecord>,
}

/// `layers/CHAIN-ID/info.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LayerInfo {
    pub(crate) chain_id: ChainId,
    pub(crate) diff_id: Digest,
    /// About what it takes of the disk, bytes.
    pub(crate) disk_bytes: u64,
    pub(crate) inodes: u64,
    /// Bytes of its archive without compression.
    pub(crate) archive_bytes: u64,
}

pub(crate) fn text(record: &impl Serialize) -> Vec<u8> {
    // Fields of text and numbers always have a form.
    let mut text = serde_json::to_vec_pretty(record).unwrap_or_default();
    text.push(b'\n');
    text
}
