//! What CSI drivers of a test have done on a disk in memory, and what they should not have been asked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use csi_api::v1;
use csi_api::v1::volume_capability::AccessType;
use ports::host::{FileKind, HostFs, HostResult, Mounter, TMPFS_MAGIC};

use crate::MemFs;

/// The file that is in every volume, and what a user wrote into it.
const FILE: &str = "data";
const CONTENT: &[u8] = b"of the user";

/// A call that changes something.
#[derive(Clone, Debug)]
pub enum VolumeCall {
    /// `NodeStageVolume`.
    Stage(v1::NodeStageVolumeRequest),
    /// `NodeUnstageVolume`.
    Unstage(v1::NodeUnstageVolumeRequest),
    /// `NodePublishVolume`.
    Publish(v1::NodePublishVolumeRequest),
    /// `NodeUnpublishVolume`.
    Unpublish(v1::NodeUnpublishVolumeRequest),
    /// `NodeExpandVolume`.
    Expand(v1::NodeExpandVolumeRequest),
}

impl VolumeCall {
    /// What it is about.
    #[must_use]
    pub fn volume(&self) -> &str {
        match self {
            Self::Stage(r) => &r.volume_id,
            Self::Unstage(r) => &r.volume_id,
            Self::Publish(r) => &r.volume_id,
            Self::Unpublish(r) => &r.volume_id,
            Self::Expand(r) => &r.volume_id,
        }
    }
}

/// A driver, by its socket, and a volume of it.
type Key = (PathBuf, String);

/// Volumes of all drivers.
#[derive(Debug, Default)]
pub struct FakeVolumes {
    disk: MemFs,
    staged: BTreeMap<Key, String>,
    published: BTreeSet<(Key, String)>,
    wrong: Vec<String>,
    /// Places that have what a user left there.
    filled: BTreeSet<PathBuf>,
    /// No driver stages anything.
    never_stages: bool,
}

fn is_raw(capability: Option<&v1::VolumeCapability>) -> bool {
    matches!(capability.and_then(|c| c.access_type.as_ref()), Some(AccessType::Block(_)))
}

impl FakeVolumes {
    /// None yet.
    #[must_use]
    pub fn on(disk: &MemFs) -> Self {
        Self { disk: disk.clone(), ..Self::default() }
    }

    /// Whether drivers stage: those that do not may be told a place all the same.
    pub fn set_staging(&mut self, stages: bool) {
        self.never_stages = !stages;
    }

    /// Does what is asked, as often as it is asked.
    ///
    /// # Errors
    /// The disk is in trouble: the caller asks again.
    pub fn carry_out(&mut self, driver: &Path, call: &VolumeCall) -> HostResult<()> {
        let key = (driver.to_owned(), call.volume().to_owned());
        match call {
            VolumeCall::Stage(r) => {
                if is_raw(r.volume_capability.as_ref()) {
                    // As drivers do that note something there.
                    let note = Path::new(&r.staging_target_path).join("note");
                    self.disk.write_file(&note, b"", 0o644)?;
                } else {
                    self.mount(&r.staging_target_path)?;
                }
                let before = self.staged.insert(key, r.staging_target_path.clone());
                if before.is_some_and(|before| before != r.staging_target_path) {
                    self.wrong.push(format!("stage of {} at a second place", r.volume_id));
                }
            }
            VolumeCall::Unstage(r) => {
                if self.published.iter().any(|(of, _)| *of == key) {
                    self.wrong.push(format!("unstage of {}, which a pod has", r.volume_id));
                }
                self.unmount(&r.volume_id, &r.staging_target_path)?;
                self.staged.remove(&key);
            }
            VolumeCall::Publish(r) => {
                let is_told_where = !r.staging_target_path.is_empty() && !self.never_stages;
                if is_told_where && !self.staged.contains_key(&key) {
                    self.wrong.push(format!("publish of {}, which is not staged", r.volume_id));
                }
                let at = Path::new(&r.target_path);
                if !is_raw(r.volume_capability.as_ref()) {
                    self.mount(&r.target_path)?;
                } else if self.disk.stat_link(at)?.is_none() {
                    self.disk.special(at, FileKind::BlockDevice);
                }
                self.published.insert((key, r.target_path.clone()));
            }
            VolumeCall::Unpublish(r) => {
                let at = Path::new(&r.target_path);
                self.check_held(&r.volume_id, at);
                self.unmount(&r.volume_id, &r.target_path)?;
                let is_device = self.disk.stat_link(at)?.is_some_and(|s| s.kind == FileKind::BlockDevice);
                let gone = if is_device { self.disk.remove_file(at) } else { self.disk.remove_empty_dir(at) };
                gone?;
                self.published.remove(&(key, r.target_path.clone()));
            }
            VolumeCall::Expand(r) => {
                if !self.published.contains(&(key, r.volume_path.clone())) {
                    self.wrong.push(format!("expand of {} at {}, where it is not", r.volume_id, r.volume_path));
                }
            }
        }
        Ok(())
    }

    /// As tmpfs: what is in it goes with the mount, and comes to nobody else.
    fn mount(&mut self, path: &str) -> HostResult<()> {
        let path = Path::new(path);
        self.disk.create_dir(path, 0o755)?;
        if !self.disk.is_mount_point(path)? {
            self.disk.mount_as(path, TMPFS_MAGIC);
        }
        if !self.filled.contains(path) {
            self.disk.write_file(&path.join(FILE), CONTENT, 0o644)?;
            self.filled.insert(path.to_owned());
        }
        Ok(())
    }

    /// A raw volume is at `.../NAME/UID`, and held open at `.../NAME/dev/UID`.
    fn check_held(&mut self, id: &str, at: &Path) {
        let mut parts = at.iter().rev().map(|part| part.to_string_lossy());
        let (Some(uid), Some(name)) = (parts.next(), parts.next()) else { return };
        if self.disk.held_devices().iter().any(|held| held.ends_with(format!("{name}/dev/{uid}"))) {
            self.wrong.push(format!("unpublish of {id}, which is held open"));
        }
    }

    fn unmount(&mut self, id: &str, path: &str) -> HostResult<()> {
        let path = Path::new(path);
        if !self.disk.is_mount_point(path)? {
            return Ok(());
        }
        if self.filled.contains(path) {
            let found = match self.disk.read_file(&path.join(FILE), u64::MAX) {
                Err(e) if !e.is_not_found() => return Err(e),
                found => found,
            };
            if found.as_deref().ok() != Some(CONTENT) {
                self.wrong.push(format!("what a user had in {id} at {} is {found:?}", path.display()));
            }
        }
        self.disk.unmount(path)?;
        self.filled.remove(path);
        Ok(())
    }

    /// The machine starts anew: nothing is mounted any more.
    pub fn reboot(&mut self) {
        self.staged.clear();
        self.published.clear();
        self.filled.clear();
    }

    /// Volumes that are staged.
    #[must_use]
    pub fn staged(&self) -> Vec<String> {
        self.staged.keys().map(|(_, id)| id.clone()).collect()
    }

    /// Volumes that are published; one for each place.
    #[must_use]
    pub fn published(&self) -> Vec<String> {
        self.published.iter().map(|((_, id), _)| id.clone()).collect()
    }

    /// What drivers were asked against the rules of CSI, and users' files that were not as users left them.
    #[must_use]
    pub fn wrong(&self) -> &[String] {
        &self.wrong
    }
}
