//! Where volumes of CSI drivers are on the disk, and what is found there. Every function blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use actor::chain;
use model::PodUid;
use ports::host::{HostFs, HostResult};
use volume_plan::data::{self, MAX_BYTES, VolumeData};
use volume_plan::names::handle_hash;

use crate::deps::Deps;
use crate::layout::{CSI, PRIVATE, PodLayout, plain, pods};
use crate::unreadable::Unreadable;

/// Names beside those of drivers, of layouts that are not made here.
const NO_DRIVERS: [&str; 2] = ["pv", "volumeDevices"];
const DATA: &str = "vol_data.json";

/// The directory of one volume, with its file and the directory that the driver is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeDir {
    dir: PathBuf,
    /// What the driver is given.
    pub target: PathBuf,
}

fn staged(root: &Path) -> PathBuf {
    root.join("plugins/kubernetes.io/csi")
}

impl VolumeDir {
    /// Where a volume is staged for all pods.
    pub(crate) fn stage(root: &Path, driver: &str, handle: &str) -> Result<Self, String> {
        let driver = plain(driver).map_err(|e| e.message)?;
        let dir = staged(root).join(driver).join(handle_hash(handle));
        Ok(Self { target: dir.join("globalmount"), dir })
    }

    /// Where a volume is published to a pod.
    pub(crate) fn publish(layout: &PodLayout, name: &str) -> Result<Self, String> {
        let dir = layout.volume(CSI, name).map_err(|e| e.message)?;
        Ok(Self { target: dir.join("mount"), dir })
    }

    /// Makes the directory and the file, which stays from now on whatever happens. Answers whether it was there before.
    pub(crate) fn intend(&self, fs: &dyn HostFs, content: &[u8], with_target: bool) -> Result<bool, String> {
        let done: HostResult<bool> = (|| {
            fs.create_dir(if with_target { &self.target } else { &self.dir }, PRIVATE)?;
            let file = self.dir.join(DATA);
            let before = match fs.read_file(&file, MAX_BYTES) {
                Ok(before) => Some(before),
                Err(e) if e.is_not_found() => None,
                Err(e) => return Err(e),
            };
            if before.as_deref() != Some(content) {
                fs.write_file_synced(&file, content, 0o644)?;
                fs.sync_dir(&self.dir)?;
            }
            Ok(before.is_some())
        })();
        done.map_err(|e| chain(&e))
    }

    /// What the file says; `None`: there is none.
    pub(crate) fn data(&self, fs: &dyn HostFs) -> Result<Option<VolumeData>, String> {
        match fs.read_file(&self.dir.join(DATA), MAX_BYTES) {
            Ok(text) => data::read(&text).map(Some),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(chain(&e)),
        }
    }

    /// Takes the directory away, after the driver undid what it had done. Nothing that is mounted or holds anything goes.
    pub(crate) fn remove(&self, deps: &Deps) -> Result<(), String> {
        let done: HostResult<bool> = (|| {
            if deps.mounts.is_mount_point(&self.target)? || deps.mounts.is_mount_point(&self.dir)? {
                return Ok(false);
            }
            deps.fs.remove_empty_dir(&self.target)?;
            // The file last: until then it says what is still to be undone.
            deps.fs.remove_file(&self.dir.join(DATA))?;
            deps.fs.remove_empty_dir(&self.dir)?;
            Ok(true)
        })();
        match done {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("{} is still mounted", self.target.display())),
            Err(e) => Err(chain(&e)),
        }
    }
}

/// What the disk shows.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// By driver and handle: where it is staged.
    pub staged: BTreeMap<(String, String), VolumeDir>,
    /// By driver and handle: pods that it is published to.
    pub published: BTreeMap<(String, String), BTreeSet<PodUid>>,
    /// Directories that do not say which volume they are of.
    pub unreadable: Vec<Unreadable>,
}

/// Names in a directory; none where there is none.
fn dirs(fs: &dyn HostFs, path: &Path) -> Result<Vec<String>, String> {
    match fs.list_dir(path) {
        Ok(entries) => Ok(entries.into_iter().filter(|e| e.is_dir).map(|e| e.name).collect()),
        Err(e) if e.is_not_found() => Ok(Vec::new()),
        Err(e) => Err(chain(&e)),
    }
}

/// Volumes of one pod that drivers published, or may have.
pub(crate) fn published_to(fs: &dyn HostFs, layout: &PodLayout) -> Result<Vec<String>, String> {
    dirs(fs, &layout.volumes().join(CSI))
}

/// Everything that drivers staged or published, or may have. A directory that cannot be listed makes the whole answer fail: on
/// less than all, nothing may be taken away.
pub(crate) fn found(fs: &dyn HostFs, root: &Path) -> Result<Found, String> {
    let mut found = Found::default();
    for driver in dirs(fs, &staged(root))?.into_iter().filter(|d| !NO_DRIVERS.contains(&d.as_str())) {
        for hash in dirs(fs, &staged(root).join(&driver))? {
            let dir = staged(root).join(&driver).join(hash);
            let volume = VolumeDir { target: dir.join("globalmount"), dir };
            match volume.data(fs) {
                Ok(Some(data)) => drop(found.staged.insert((data.driver, data.handle), volume)),
                Ok(None) => {}
                Err(error) => found.unreadable.push(Unreadable { path: volume.dir, published: None, error }),
            }
        }
    }
    for pod in dirs(fs, &pods(root))? {
        let uid = PodUid::from(pod);
        let Ok(layout) = PodLayout::new(root, &uid) else { continue };
        for name in published_to(fs, &layout)? {
            let volume = VolumeDir::publish(&layout, &name)?;
            match volume.data(fs) {
                Ok(Some(data)) => {
                    found.published.entry((data.driver, data.handle)).or_default().insert(uid.clone());
                }
                Ok(None) => {}
                Err(error) => {
                    let published = Some((uid.clone(), name));
                    found.unreadable.push(Unreadable { path: volume.dir, published, error });
                }
            }
        }
    }
    Ok(found)
}
