//! Which images there are, by what their records say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use image_pull::reference::Reference;

use crate::check::read_record;
use crate::digest::{ChainId, Digest};
use crate::error::StoreError;
use crate::files;
use crate::folder::Folder;
use crate::oci::ImageConfig;
use crate::record::{LayerRecord, Record};

/// An image of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Digest of its configuration.
    pub id: Digest,
    /// Whole names with tags: `docker.io/library/busybox:1.36`.
    pub repo_tags: Vec<String>,
    /// Whole names with digests.
    pub repo_digests: Vec<String>,
    /// What its layers take of the disk, bytes.
    pub size_bytes: u64,
    /// Never garbage.
    pub pinned: bool,
    /// What containers of it start with.
    pub config: Arc<ImageConfig>,
    /// Its layers, lowest first.
    pub chain: Vec<ChainId>,
    /// The same with the names that the registry has for them.
    pub layers: Vec<LayerRecord>,
    /// When its names were given last, nanoseconds since the epoch.
    pub changed_ns: u64,
}

/// All records, as they were when the folder of records last changed.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    read: Option<(SystemTime, Arc<Images>)>,
}

#[derive(Debug, Default)]
pub(crate) struct Images {
    records: BTreeMap<Digest, Record>,
    images: BTreeMap<Digest, Image>,
    /// By whole name, with tag or digest.
    names: BTreeMap<String, Digest>,
}

/// Changes of a folder closer together than this may have the same time.
const GRAIN: Duration = Duration::from_millis(50);

impl Catalogue {
    pub(crate) fn forget(&mut self) {
        self.read = None;
    }

    /// The records; read again when somebody changed one.
    pub(crate) fn read(&mut self, folder: &Folder) -> Result<Arc<Images>, StoreError> {
        let images = folder.root.join("images");
        let meta = std::fs::metadata(&images).map_err(StoreError::disk("read", &images))?;
        let changed = meta.modified().map_err(StoreError::disk("read", &images))?;
        if let Some((_, known)) = self.read.as_ref().filter(|(at, _)| *at == changed) {
            return Ok(known.clone());
        }
        let images = Arc::new(Images::read(folder)?);
        let settled = SystemTime::now().duration_since(changed).is_ok_and(|age| age > GRAIN);
        self.read = settled.then(|| (changed, images.clone()));
        Ok(images)
    }
}

impl Images {
    fn read(folder: &Folder) -> Result<Self, StoreError> {
        let mut all = Self::default();
        let images = folder.root.join("images");
        for name in files::names(&images)?.into_iter().filter(|n| n.ends_with(".json")) {
            // One that cannot be read is set aside when the store is opened next.
            if let Some(record) = read_record(&images.join(name))? {
                all.records.insert(record.id, record);
            }
        }
        let mut by_age: Vec<&Record> = all.records.values().collect();
        by_age.sort_by_key(|r| r.changed_ns);
        for record in by_age {
            for name in record.names.iter().chain(&record.digests) {
                all.names.insert(name.clone(), record.id);
            }
        }
        for record in all.records.values() {
            if let Some(image) = all.made(folder, record)? {
                all.images.insert(record.id, image);
            }
        }
        Ok(all)
    }

    /// `None`: it is not whole.
    fn made(&self, folder: &Folder, record: &Record) -> Result<Option<Image>, StoreError> {
        let Some(text) = folder.document(&record.id)? else { return Ok(None) };
        let Ok(config) = ImageConfig::parse(&text) else { return Ok(None) };
        let mut size_bytes = text.len() as u64;
        for layer in &record.layers {
            let Some(info) = folder.layer_info(&layer.chain_id)? else { return Ok(None) };
            size_bytes += info.disk_bytes;
        }
        let own = |name: &&String| self.names.get(*name) == Some(&record.id);
        Ok(Some(Image {
            id: record.id,
            repo_tags: record.names.iter().filter(own).cloned().collect(),
            repo_digests: record.digests.iter().filter(own).cloned().collect(),
            size_bytes,
            pinned: record.pinned,
            config: Arc::new(config),
            chain: record.layers.iter().map(|l| l.chain_id).collect(),
            layers: record.layers.clone(),
            changed_ns: record.changed_ns,
        }))
    }

    pub(crate) fn record(&self, id: &Digest) -> Option<&Record> {
        self.records.get(id)
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.values()
    }

    /// Those that are whole, by id.
    pub(crate) fn images(&self) -> impl Iterator<Item = &Image> {
        self.images.values()
    }

    pub(crate) fn image(&self, id: &Digest) -> Option<Image> {
        self.images.get(id).cloned()
    }

    /// Records of other images that have names of this one.
    pub(crate) fn losing<'a>(&'a self, record: &'a Record) -> impl Iterator<Item = Record> + 'a {
        let has = |r: &&Record| r.id != record.id && r.names.iter().any(|n| record.names.contains(n));
        self.records.values().filter(has).cloned()
    }

    /// By name, by id, or by the beginning of an id, of at least four digits.
    pub(crate) fn find(&self, text: &str) -> Result<Option<Digest>, StoreError> {
        if let Some(id) = text.parse().ok().or_else(|| Digest::from_hex(text)) {
            return Ok(self.images.contains_key(&id).then_some(id));
        }
        if let Ok(reference) = Reference::parse(text) {
            let name = match &reference.digest {
                Some(digest) => format!("{}@{digest}", reference.repository()),
                None => reference.to_string(),
            };
            if let Some(id) = self.names.get(&name).filter(|id| self.images.contains_key(id)) {
                return Ok(Some(*id));
            }
        }
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        if digits.len() < 4 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let mut fitting = self.images.keys().filter(|id| id.hex().starts_with(digits));
        match (fitting.next(), fitting.next()) {
            (Some(_), Some(_)) => Err(StoreError::Several(text.to_owned())),
            (found, _) => Ok(found.copied()),
        }
    }
}
