//! Where volumes of CSI drivers are on the disk, and what is found there. Every function blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use actor::chain;
use model::PodUid;
use ports::host::{HostFs, HostResult};
use volume_plan::claim::Mode;
use volume_plan::data::{self, MAX_BYTES, VolumeData};
use volume_plan::names::handle_hash;
use volume_plan::source::{Csi, Resolved};

use crate::deps::Deps;
use crate::device_map::{CSI_DEVICES, DeviceMap};
use crate::layout::{CSI, LOCAL_VOLUME, PRIVATE, PodLayout, plain, pods};
use crate::listing;
use crate::unreadable::Unreadable;

/// Names beside those of drivers, of layouts that are not made here.
const NO_DRIVERS: [&str; 2] = ["pv", "volumeDevices"];
/// Where disks of local volumes are mounted, below the root directory.
const DISKS: &str = "plugins/kubernetes.io/local-volume/mounts";
const DATA: &str = "vol_data.json";
/// Directories among those of raw volumes.
const STAGED: &str = "staging";
const PUBLISHED: &str = "publish";

/// The directory of one volume, with its file and the directory that the driver is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeDir {
    dir: PathBuf,
    /// What the driver is given.
    pub target: PathBuf,
    /// That is there before the driver is called; else it makes it itself.
    makes_target: bool,
    /// Directories of a raw volume that go before the file, and the one that goes after all.
    of_device: Option<([PathBuf; 2], PathBuf)>,
}

fn staged(root: &Path) -> PathBuf {
    root.join("plugins/kubernetes.io/csi")
}

impl VolumeDir {
    /// Where a volume is staged for all pods.
    pub(crate) fn staged(root: &Path, volume: &Resolved, csi: &Csi) -> Result<Self, String> {
        match volume.mode {
            Mode::Filesystem => Self::stage(root, &csi.driver, &csi.handle),
            Mode::Block => Self::device(root, &volume.name),
        }
    }

    fn stage(root: &Path, driver: &str, handle: &str) -> Result<Self, String> {
        let driver = plain(driver).map_err(|e| e.message)?;
        let dir = staged(root).join(driver).join(handle_hash(handle));
        Ok(Self { target: dir.join("globalmount"), makes_target: true, dir, of_device: None })
    }

    /// Where a raw volume is staged for all pods, by the name of the PersistentVolume.
    pub(crate) fn device(root: &Path, name: &str) -> Result<Self, String> {
        let (all, name) = (root.join(CSI_DEVICES), plain(name).map_err(|e| e.message)?);
        let own = all.join(name);
        let of_device = Some(([all.join(PUBLISHED).join(name), own.join("dev")], own.clone()));
        Ok(Self { dir: own.join("data"), target: all.join(STAGED).join(name), makes_target: true, of_device })
    }

    /// Where a volume is published to a pod.
    pub(crate) fn publish(layout: &PodLayout, name: &str) -> Result<Self, String> {
        // The name of a volume that stands in a pod may be a path; a kubelet writes it so.
        let dir = layout.volume(CSI, &name.replace('/', "~")).map_err(|e| e.message)?;
        Ok(Self { target: dir.join("mount"), makes_target: false, dir, of_device: None })
    }

    /// Whether the volume is a raw one.
    pub(crate) fn is_of_device(&self) -> bool {
        self.of_device.is_some()
    }

    /// Makes the directory and the file, which stays from now on whatever becomes of the daemon, and with [`Self::sync`] over a loss
    /// of power. Answers whether it was there before.
    pub(crate) fn intend(&self, fs: &dyn HostFs, content: &[u8]) -> Result<bool, String> {
        let done: HostResult<bool> = (|| {
            fs.create_dir(&self.dir, PRIVATE)?;
            let file = self.dir.join(DATA);
            let before = match fs.read_file(&file, MAX_BYTES) {
                Ok(before) => Some(before),
                Err(e) if e.is_not_found() => None,
                Err(e) => return Err(e),
            };
            if before.as_deref() != Some(content) {
                fs.write_file(&file, content, 0o644)?;
            }
            if self.makes_target {
                fs.create_dir(&self.target, PRIVATE)?;
            }
            Ok(before.is_some())
        })();
        done.map_err(|e| chain(&e))
    }

    /// Brings the file to the disk.
    pub(crate) fn sync(&self, fs: &dyn HostFs) -> Result<(), String> {
        fs.sync_file(&self.dir.join(DATA)).map_err(|e| chain(&e))
    }

    /// What the file says; `None`: there is none.
    pub(crate) fn data(&self, fs: &dyn HostFs) -> Result<Option<VolumeData>, String> {
        match fs.read_file(&self.dir.join(DATA), MAX_BYTES) {
            Ok(text) => data::read(&text).map(Some),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(chain(&e)),
        }
    }

    /// As [`VolumeDir::remove`], of a volume that was unstaged. What drivers leave where they staged a raw volume goes as well: no
    /// pod ever saw it.
    pub(crate) fn remove_staged(&self, deps: &Deps) -> Result<(), String> {
        if self.of_device.is_some() {
            deps.fs.remove_tree(&self.target).map_err(|e| chain(&e))?;
        }
        self.remove(deps)
    }

    /// As [`VolumeDir::remove`], of one in which nothing said which volume it is of. One that says so by now stays, and so does what is
    /// mounted: nothing of a driver's is looked at.
    pub(crate) fn remove_cut_off(&self, deps: &Deps, root: &Path) -> Result<(), String> {
        if self.data(&*deps.fs)?.is_some() {
            return Ok(());
        }
        let table = deps.mounts.mount_table(root).map_err(|e| chain(&e))?;
        if table.iter().any(|line| line.at == self.target || line.at == self.dir) {
            return Err(format!("{} is still mounted", self.target.display()));
        }
        self.remove(deps)
    }

    /// Takes the directory away, after the driver undid what it had done. Nothing that is mounted or holds anything goes.
    pub(crate) fn remove(&self, deps: &Deps) -> Result<(), String> {
        let left = names(&*deps.fs, &self.dir)?;
        let done: HostResult<bool> = (|| {
            if deps.mounts.is_mount_point(&self.target)? || deps.mounts.is_mount_point(&self.dir)? {
                return Ok(false);
            }
            deps.fs.remove_empty_dir(&self.target)?;
            for dir in self.of_device.iter().flat_map(|(before, _)| before) {
                deps.fs.remove_empty_dir(dir)?;
            }
            for name in left.iter().filter(|name| is_cut_off(name)) {
                deps.fs.remove_file(&self.dir.join(name))?;
            }
            // The file last: until then it says what is still to be undone.
            deps.fs.remove_file(&self.dir.join(DATA))?;
            deps.fs.remove_empty_dir(&self.dir)?;
            self.of_device.iter().try_for_each(|(_, above)| deps.fs.remove_empty_dir(above))?;
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
    /// Directories that cannot be listed: there may be more than all else here says.
    pub unlisted: Vec<Unreadable>,
    /// Directories for volumes that were staged or unstaged, in which nothing says so (yet, or any more): somebody was killed at it.
    pub cut_off: Vec<VolumeDir>,
    /// Raw volumes that are published to a pod which has no link to them: somebody was killed at the end of it.
    pub strays: Vec<Stray>,
    /// Disks that are mounted for local volumes, by name of the PersistentVolume, and whether a pod has one.
    pub disks: BTreeMap<String, bool>,
}

impl Found {
    /// Pods that have a volume of this name, or may.
    pub(crate) fn users<'a>(&'a self, csi: &Csi, name: &'a str) -> impl Iterator<Item = &'a PodUid> {
        let readable = self.published.get(&(csi.driver.clone(), csi.handle.clone())).into_iter().flatten();
        // A directory has the name of its volume, whatever can be read in it.
        let unread = self.unreadable.iter().filter_map(|u| u.published.as_ref());
        readable.chain(unread.filter(move |(_, of)| of == name).map(|(uid, _)| uid))
    }
}

/// A raw volume that was left in the middle of being taken from a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stray {
    pub key: (String, String),
    /// Name of the PersistentVolume.
    pub name: String,
    pub pod: PodUid,
}

/// What a driver is given to publish a raw volume to a pod.
pub(crate) fn device_target(layout: &PodLayout, name: &str) -> Result<PathBuf, String> {
    let name = plain(name).map_err(|e| e.message)?;
    Ok(layout.root().join(CSI_DEVICES).join(PUBLISHED).join(name).join(layout.uid()))
}

/// Where the disk of a local volume is mounted for all pods.
pub(crate) fn disk_dir(root: &Path, name: &str) -> Result<PathBuf, String> {
    Ok(root.join(DISKS).join(plain(name).map_err(|e| e.message)?))
}

/// Names of directories in a directory; none where there is none.
fn dirs(fs: &dyn HostFs, path: &Path) -> Result<Vec<String>, String> {
    listing::dirs(fs, path).map_err(|e| chain(&e))
}

fn names(fs: &dyn HostFs, path: &Path) -> Result<Vec<String>, String> {
    listing::names(fs, path).map_err(|e| chain(&e))
}

/// What was written in place of the file by a daemon that died over it, see [`HostFs::write_file`].
fn is_cut_off(name: &str) -> bool {
    name.strip_prefix('.').and_then(|n| n.strip_prefix(DATA)).is_some_and(|rest| rest.ends_with(".tmp"))
}

/// As [`seen`], for who takes something away.
///
/// # Errors
/// A directory cannot be listed: on less than all, nothing may be taken away.
pub(crate) fn found(fs: &dyn HostFs, root: &Path) -> Result<Found, String> {
    let mut found = seen(fs, root);
    if found.unlisted.is_empty() { Ok(found) } else { Err(found.unlisted.swap_remove(0).error) }
}

/// Everything that drivers staged or published, or may have, as far as directories can be listed.
pub(crate) fn seen(fs: &dyn HostFs, root: &Path) -> Found {
    let mut look = Look { fs, root, found: Found::default() };
    look.staged();
    let devices = look.devices();
    look.found.disks = look.dirs(&root.join(DISKS)).into_iter().map(|name| (name, false)).collect();
    for pod in look.dirs(&pods(root)) {
        let uid = PodUid::from(pod);
        if let Ok(layout) = PodLayout::new(root, &uid) {
            look.of_pod(&uid, &layout, &devices);
        }
    }
    look.found
}

/// A look at the disk. What fails in it is noted, and the rest is looked at all the same.
struct Look<'a> {
    fs: &'a dyn HostFs,
    root: &'a Path,
    found: Found,
}

impl Look<'_> {
    fn dirs(&mut self, path: &Path) -> Vec<String> {
        let listed = dirs(self.fs, path);
        self.seen(path, listed)
    }

    fn names(&mut self, path: &Path) -> Vec<String> {
        let listed = names(self.fs, path);
        self.seen(path, listed)
    }

    fn seen<T: Default>(&mut self, path: &Path, said: Result<T, String>) -> T {
        said.unwrap_or_else(|error| {
            self.found.unlisted.push(Unreadable { path: path.to_owned(), published: None, error });
            T::default()
        })
    }

    fn staged(&mut self) {
        let all = staged(self.root);
        for driver in self.dirs(&all).into_iter().filter(|d| !NO_DRIVERS.contains(&d.as_str())) {
            for hash in self.dirs(&all.join(&driver)) {
                let dir = all.join(&driver).join(hash);
                let volume = VolumeDir { target: dir.join("globalmount"), makes_target: true, dir, of_device: None };
                if let Some(data) = data_of(self.fs, &volume, &mut self.found) {
                    self.found.staged.insert((data.driver, data.handle), volume);
                }
            }
        }
    }

    /// `devices`: raw volumes by the names of their PersistentVolumes.
    fn of_pod(&mut self, uid: &PodUid, layout: &PodLayout, devices: &BTreeMap<String, (String, String)>) {
        let all = layout.volumes().join(CSI);
        for name in self.dirs(&all) {
            let volume = VolumeDir::publish(layout, &name);
            let Some(volume) = self.seen(&all.join(&name), volume.map(Some)) else { continue };
            match volume.data(self.fs) {
                Ok(Some(data)) => self.published(uid, (data.driver, data.handle)),
                Ok(None) => {}
                Err(error) => {
                    let published = Some((uid.clone(), name));
                    self.found.unreadable.push(Unreadable { path: volume.dir, published, error });
                }
            }
        }
        for name in self.names(&layout.block_devices().join(CSI)) {
            if let Some(key) = devices.get(&name) {
                self.published(uid, key.clone());
            }
        }
        for name in self.dirs(&layout.volumes().join(LOCAL_VOLUME)) {
            self.found.disks.entry(name).and_modify(|has| *has = true);
        }
    }

    fn published(&mut self, uid: &PodUid, key: (String, String)) {
        self.found.published.entry(key).or_default().insert(uid.clone());
    }

    /// Raw volumes by the names of their PersistentVolumes.
    fn devices(&mut self) -> BTreeMap<String, (String, String)> {
        let (all, mut devices) = (self.root.join(CSI_DEVICES), BTreeMap::new());
        for name in self.dirs(&all).into_iter().filter(|name| name != STAGED && name != PUBLISHED) {
            let volume = VolumeDir::device(self.root, &name);
            let Some(volume) = self.seen(&all.join(&name), volume.map(Some)) else { continue };
            let Some(data) = data_of(self.fs, &volume, &mut self.found) else { continue };
            let key = (data.driver, data.handle);
            self.found.staged.insert(key.clone(), volume);
            let mut uids = self.names(&all.join(&name).join("dev"));
            uids.extend(self.names(&all.join(PUBLISHED).join(&name)));
            for uid in uids.into_iter().collect::<BTreeSet<_>>() {
                self.bound(PodUid::from(uid), &key, &name);
            }
            devices.insert(name, key);
        }
        devices
    }

    /// A raw volume is bound or published for a pod, which has a link to it unless somebody was killed over it.
    fn bound(&mut self, pod: PodUid, key: &(String, String), name: &str) {
        let Ok(layout) = PodLayout::new(self.root, &pod) else { return };
        let map = DeviceMap::new(&layout, CSI, name).map_err(|e| e.message);
        let is_linked = map.and_then(|map| map.is_there(self.fs).map_err(|e| chain(&e)).map(Some));
        if self.seen(&layout.block_devices(), is_linked) == Some(false) {
            self.found.strays.push(Stray { key: key.clone(), name: name.to_owned(), pod: pod.clone() });
        }
        self.published(&pod, key.clone());
    }
}

/// What a staged volume is; `None`: it cannot be told, or nothing was staged yet.
fn data_of(fs: &dyn HostFs, volume: &VolumeDir, found: &mut Found) -> Option<VolumeData> {
    let data = volume.data(fs);
    match &data {
        Ok(Some(_)) => {}
        Ok(None) => found.cut_off.push(volume.clone()),
        Err(error) => {
            found.unreadable.push(Unreadable { path: volume.dir.clone(), published: None, error: error.clone() });
        }
    }
    data.ok().flatten()
}
