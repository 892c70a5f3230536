//! Pull records on disk (interfaces 8.7). Every function blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cri_api::v1::Image;
use model::Timestamp;
use ports::host::{HostFs, HostResult};
use pull_credentials::records::{Access, PullIntent, PullRecord, file_name, is_record_file, merged};
use pull_credentials::verification::Trace;

/// Longer than any record.
const FILE_MAX_BYTES: u64 = 4 << 20;
const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Order among those who read and write records, and how many pulls of an image are under way. Make it once, outside of the
/// actor.
#[derive(Clone, Debug, Default)]
pub struct PullRecords(Arc<Mutex<BTreeMap<String, usize>>>);

/// The two folders, held by one who works on them.
pub(crate) struct LockedRecords<'a> {
    fs: &'a dyn HostFs,
    root: PathBuf,
    pulls: MutexGuard<'a, BTreeMap<String, usize>>,
}

impl PullRecords {
    /// Waits for its turn; all others wait until the answer is dropped.
    pub(crate) fn lock<'a>(&'a self, fs: &'a dyn HostFs, root_dir: &Path) -> LockedRecords<'a> {
        let pulls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        LockedRecords { fs, root: root_dir.join("image_manager"), pulls }
    }
}

impl LockedRecords<'_> {
    fn intent_path(&self, image: &str) -> PathBuf {
        self.root.join("pulling").join(file_name(image))
    }

    fn record_path(&self, image_ref: &str) -> PathBuf {
        self.root.join("pulled").join(file_name(image_ref))
    }

    fn write(&self, path: &Path, content: &[u8]) -> HostResult<()> {
        if let Some(dir) = path.parent() {
            self.fs.create_dir(dir, DIR_MODE)?;
        }
        self.fs.write_file(path, content, FILE_MODE)
    }

    /// The file's text; `None` when there is none, `Err` when it cannot be read.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, ()> {
        match self.fs.read_file(path, FILE_MAX_BYTES) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => {
                tracing::warn!(error = %actor::chain(&e), "a pull record cannot be read");
                Err(())
            }
        }
    }

    fn record(&self, image_ref: &str) -> Result<Option<PullRecord>, ()> {
        let Some(text) = self.read(&self.record_path(image_ref))? else { return Ok(None) };
        let Some(record) = PullRecord::decode(&text) else {
            tracing::warn!(image_ref, "a pull record is malformed");
            return Err(());
        };
        Ok((record.image_ref == image_ref).then_some(record))
    }

    /// Puts their number in the metrics.
    fn count(&self) {
        let count = |folder: &str| {
            let entries = self.fs.list_dir(&self.root.join(folder)).unwrap_or_default();
            i64::try_from(entries.iter().filter(|e| !e.is_dir && is_record_file(&e.name)).count()).unwrap_or(i64::MAX)
        };
        metrics::images::PULL_INTENTS.set(count("pulling"));
        metrics::images::PULLED_RECORDS.set(count("pulled"));
    }

    /// What the files say of an image that is here. `image` is the name as pods write it.
    pub(crate) fn trace(&self, image: &str, image_ref: &str) -> Trace {
        match self.record(image_ref) {
            Err(()) => Trace::Unreadable,
            Ok(Some(record)) => Trace::Record(record),
            Ok(None) if self.pulls.contains_key(image) => Trace::Intent,
            Ok(None) => match self.read(&self.intent_path(image)).map(|t| t.map(|t| PullIntent::decode(&t))) {
                Ok(None) => Trace::None,
                Ok(Some(Some(intent))) if intent.image != image => Trace::None,
                Ok(Some(Some(_))) => Trace::Intent,
                Ok(Some(None)) | Err(()) => Trace::Unreadable,
            },
        }
    }

    /// A pull begins: its intent is written, and without that it must not begin.
    pub(crate) fn begin(&mut self, image: &str) -> HostResult<()> {
        self.write(&self.intent_path(image), &PullIntent { image: image.to_owned() }.encode())?;
        *self.pulls.entry(image.to_owned()).or_default() += 1;
        self.count();
        Ok(())
    }

    /// A pull ended without an image.
    pub(crate) fn failed(&mut self, image: &str) {
        let left = self.pulls.get(image).map_or(0, |n| n.saturating_sub(1));
        if left > 0 {
            self.pulls.insert(image.to_owned(), left);
            return;
        }
        match self.fs.remove_file(&self.intent_path(image)) {
            Ok(()) => drop(self.pulls.remove(image)),
            Err(e) => tracing::warn!(image, error = %actor::chain(&e), "a pull intent cannot be removed"),
        }
        self.count();
    }

    /// A pull ended well. Where that cannot be written the intent stays: the image was pulled here.
    pub(crate) fn succeeded(
        &mut self,
        image: &str,
        image_ref: &str,
        repository: &str,
        access: &Access,
        now: Timestamp,
    ) {
        match self.note(image_ref, repository, Some(access), now) {
            Ok(()) => self.failed(image),
            Err(e) => tracing::warn!(image, error = %actor::chain(&e), "a pull record cannot be written"),
        }
    }

    /// Adds to a record.
    pub(crate) fn note(
        &self,
        image_ref: &str,
        repository: &str,
        access: Option<&Access>,
        now: Timestamp,
    ) -> HostResult<()> {
        // One that cannot be read is replaced: all that is known of it is what is known now.
        let old = self.record(image_ref).unwrap_or_default();
        match merged(old.as_ref(), image_ref, repository, access, now) {
            Some(record) => self.write(&self.record_path(image_ref), &record.encode()),
            None => Ok(()),
        }
    }

    /// Intents that an earlier process left.
    pub(crate) fn intents(&self) -> BTreeSet<String> {
        let dir = self.root.join("pulling");
        let entries = self.fs.list_dir(&dir).unwrap_or_default();
        let files = entries.into_iter().filter(|e| !e.is_dir && is_record_file(&e.name));
        files.filter_map(|e| Some(PullIntent::decode(&self.read(&dir.join(e.name)).ok()??)?.image)).collect()
    }

    /// Of the intents of an earlier process, those whose images are here become records that open them to nobody yet.
    pub(crate) fn recover(&mut self, intents: &BTreeSet<String>, images: &[Image], now: Timestamp) {
        for image in images {
            for name in image.repo_digests.iter().chain(&image.repo_tags) {
                let Ok(repository) = image_pull::reference::repository(name) else { continue };
                if !intents.contains(name) || self.pulls.contains_key(name) {
                    continue;
                }
                match self.note(&image.id, &repository, None, now) {
                    Ok(()) => self.failed(name),
                    Err(e) => {
                        tracing::warn!(image = name, error = %actor::chain(&e), "a pull record cannot be written")
                    }
                }
            }
        }
    }

    /// Forgets records of images that are not among these, unless they are newer than `until`.
    pub(crate) fn prune(&self, ids: &BTreeSet<String>, until: Timestamp) {
        let dir = self.root.join("pulled");
        for entry in self.fs.list_dir(&dir).unwrap_or_default() {
            let path = dir.join(&entry.name);
            if entry.is_dir || !is_record_file(&entry.name) {
                continue;
            }
            let Ok(Some(text)) = self.read(&path) else { continue };
            let Some(record) = PullRecord::decode(&text) else { continue };
            if record.updated < until
                && !ids.contains(&record.image_ref)
                && let Err(e) = self.fs.remove_file(&path)
            {
                tracing::warn!(error = %actor::chain(&e), "a pull record cannot be removed");
            }
        }
        self.count();
    }
}
