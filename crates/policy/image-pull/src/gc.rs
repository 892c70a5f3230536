//! Which images make room (node-and-resources 4.1).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::Timestamp;

#[cfg(test)]
mod tests;

/// Settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thresholds {
    /// `imageGCHighThresholdPercent`: use of the disk from which room is made.
    pub high_percent: u8,
    /// `imageGCLowThresholdPercent`: use of the disk down to which room is made.
    pub low_percent: u8,
    /// `imageMinimumGCAge`: images known for less stay.
    pub min_age: Duration,
    /// `imageMaximumGCAge`: images unused for longer go whatever the disk; zero: never for that.
    pub max_age: Duration,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { high_percent: 85, low_percent: 80, min_age: Duration::from_secs(120), max_age: Duration::ZERO }
    }
}

impl Thresholds {
    /// Nothing is ever to be removed.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.high_percent == 100 && self.max_age.is_zero()
    }
}

/// An image that the runtime has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listed {
    /// Id.
    pub id: String,
    /// Tags and digests that it is known by.
    pub names: Vec<String>,
    /// Bytes.
    pub size_bytes: u64,
    /// The runtime keeps it for itself.
    pub pinned: bool,
}

/// What is remembered of an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// When it was first seen; not set for what was there before.
    pub first_detected: Timestamp,
    /// When it was last seen in use; not set: never.
    pub last_used: Timestamp,
    /// Bytes.
    pub size_bytes: u64,
    /// Never removed: pinned, or what sandboxes are made of.
    pub kept: bool,
    /// In use when last looked at.
    pub in_use: bool,
}

/// What is remembered of all images, by id.
pub type Memory = BTreeMap<String, Known>;

/// Takes a list of images in. `used` holds ids, tags or digests of what containers use; `first` says that nothing was
/// known before, so that what is there counts as old.
pub fn observe(memory: &mut Memory, images: &[Listed], used: &BTreeSet<String>, now: Timestamp, first: bool) {
    let ids: BTreeSet<&str> = images.iter().map(|i| i.id.as_str()).collect();
    memory.retain(|id, _| ids.contains(id.as_str()));
    for image in images {
        let known = memory.entry(image.id.clone()).or_insert(Known {
            first_detected: if first { Timestamp::ZERO } else { now },
            last_used: Timestamp::ZERO,
            size_bytes: 0,
            kept: false,
            in_use: false,
        });
        known.size_bytes = image.size_bytes;
        known.kept = image.pinned || image.names.iter().any(|n| is_sandbox_image(n));
        known.in_use = used.contains(&image.id) || image.names.iter().any(|n| used.contains(n));
        if known.in_use {
            known.last_used = now;
        }
    }
}

/// Older runtimes do not pin what they make sandboxes of, and cannot pull it under another name when it is gone.
fn is_sandbox_image(name: &str) -> bool {
    let repository = name.split('@').next().unwrap_or(name);
    let last = repository.rsplit('/').next().unwrap_or(repository);
    repository.contains('/') && last.split(':').next() == Some("pause")
}

/// The file system says that it has no size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("invalid capacity 0 on image filesystem")]
pub struct InvalidCapacity;

/// Bytes to free; `None` below the high threshold.
///
/// # Errors
/// The capacity is 0.
pub fn amount_to_free(capacity: u64, available: u64, t: &Thresholds) -> Result<Option<u64>, InvalidCapacity> {
    if capacity == 0 {
        return Err(InvalidCapacity);
    }
    let (capacity, available) = (u128::from(capacity), u128::from(available.min(capacity)));
    let used_percent = 100 - available * 100 / capacity;
    if used_percent < u128::from(t.high_percent) {
        return Ok(None);
    }
    let wanted = capacity * u128::from(100 - t.low_percent.min(100)) / 100;
    Ok(Some(u64::try_from(wanted.saturating_sub(available)).unwrap_or(u64::MAX)))
}

fn removable(known: &Known) -> bool {
    !known.in_use && !known.kept
}

/// Images that are unused for longer than the maximum age, once that long has been watched.
#[must_use]
pub fn too_old(memory: &Memory, t: &Thresholds, watching_since: Timestamp, now: Timestamp) -> Vec<String> {
    let longer = |since: Timestamp| now.nanos_since(since) > i64::try_from(t.max_age.as_nanos()).unwrap_or(i64::MAX);
    if t.max_age.is_zero() || !longer(watching_since) {
        return Vec::new();
    }
    let old = memory.iter().filter(|(_, k)| removable(k) && longer(k.last_used));
    old.map(|(id, _)| id.clone()).collect()
}

/// Candidates to make room with, in the order of going: least recently used first, then those known for longest.
#[must_use]
pub fn candidates(memory: &Memory, t: &Thresholds, now: Timestamp) -> Vec<(String, u64)> {
    let min_age = i64::try_from(t.min_age.as_nanos()).unwrap_or(i64::MAX);
    let grown = |k: &Known| now.nanos_since(k.first_detected) >= min_age && k.last_used < now;
    let mut list: Vec<_> = memory.iter().filter(|(_, k)| removable(k) && grown(k)).collect();
    list.sort_by_key(|(_, k)| (k.last_used, k.first_detected));
    list.into_iter().map(|(id, k)| (id.clone(), k.size_bytes)).collect()
}

/// What users read when there is not enough to remove.
#[must_use]
pub fn not_enough(wanted: u64, freed: u64) -> String {
    format!(
        "Failed to garbage collect required amount of images. Attempted to free {wanted} bytes, but only found {freed} bytes eligible to free."
    )
}
