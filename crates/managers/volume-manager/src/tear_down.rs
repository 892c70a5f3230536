//! Taking volumes and pod directories away. Every function blocks and may be repeated.

use std::collections::BTreeSet;
use std::path::Path;

use actor::chain;
use ports::host::{FileKind, HUGETLBFS_MAGIC, HostError, HostFs, HostResult, TMPFS_MAGIC};
use projection::atomic;

use crate::deps::Deps;
use crate::device_map::{DeviceMap, remove_target};
use crate::layout::{CSI, EMPTY_DIR, LOCAL_VOLUME, NFS, PodLayout, WRAPPED, marker};
use crate::listing::{dirs, entries, volume_root};
use crate::lun_dir::{self, transport};
use crate::measure::counted;

/// How it is known that content below `volumes` may be deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Proof {
    /// The pod's worker said that its pod has ended.
    Ended,
    /// Nobody knows the pod: only what carries our marker, or files as the atomic writer leaves them, is ours.
    Marker,
}

/// Names of the volumes that are, or may be, set up; `None` when the pod has no directory.
///
/// # Errors
/// Where a directory cannot be read it is not known what is there.
pub(crate) fn present(fs: &dyn HostFs, layout: &PodLayout) -> HostResult<Option<Vec<String>>> {
    if fs.stat_link(layout.dir())?.is_none_or(|s| s.kind != FileKind::Dir) {
        return Ok(None);
    }
    let all = volumes(fs, layout)?.into_iter().chain(devices(fs, layout)?);
    let mut names: Vec<String> = all.map(|(_, name)| name).collect();
    names.sort();
    names.dedup();
    Ok(Some(names))
}

/// (plugin, volume) of every volume directory.
fn volumes(fs: &dyn HostFs, layout: &PodLayout) -> HostResult<Vec<(String, String)>> {
    let mut found = Vec::new();
    for plugin in dirs(fs, &layout.volumes())? {
        let names = dirs(fs, &layout.volumes().join(&plugin))?;
        found.extend(names.into_iter().map(|name| (plugin.clone(), name)));
    }
    Ok(found)
}

/// (plugin, volume) of every raw volume that the pod has, or may have.
fn devices(fs: &dyn HostFs, layout: &PodLayout) -> HostResult<Vec<(String, String)>> {
    let mut found = Vec::new();
    for plugin in dirs(fs, &layout.block_devices())? {
        let names = entries(fs, &layout.block_devices().join(&plugin))?;
        found.extend(names.into_iter().map(|e| (plugin.clone(), e.name)));
    }
    Ok(found)
}

/// Whose volumes are to be taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    /// There is none.
    Nobodys,
    /// All were made here.
    Ours,
    /// There is the subPath of a volume that has no directory here (a hostPath), a volume of a kind that is not made here, or a device.
    Users,
}

pub(crate) fn whose(fs: &dyn HostFs, layout: &PodLayout) -> HostResult<Whose> {
    let (volumes, bound) = (volumes(fs, layout)?, dirs(fs, &layout.sub_paths())?);
    if !devices(fs, layout)?.is_empty() {
        return Ok(Whose::Users);
    }
    let is_foreign = |bound: &String| !volumes.iter().any(|(_, name)| name == bound);
    Ok(if volumes.iter().any(|(plugin, _)| !is_made_here(plugin)) || bound.iter().any(is_foreign) {
        Whose::Users
    } else if volumes.is_empty() {
        Whose::Nobodys
    } else {
        Whose::Ours
    })
}

/// Whether volumes of this kind's directory hold what this node made, on its own disk or in memory.
pub(crate) fn is_made_here(plugin: &str) -> bool {
    plugin == EMPTY_DIR || WRAPPED.contains(&plugin)
}

/// A volume that its CSI driver must be asked to take, by the name of its directory or link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum OfDriver {
    /// With a file system.
    Files(String),
    /// A raw one.
    Device(String),
}

impl OfDriver {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Files(name) | Self::Device(name) => name,
        }
    }
}

/// What a tear-down left to others.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Volumes of CSI drivers: their drivers must be asked, and nothing of them was touched.
    pub(crate) of_drivers: Vec<OfDriver>,
    /// Why something else is still there: the first failure.
    pub(crate) failed: Option<String>,
}

impl Left {
    /// # Errors
    /// Something is still there.
    #[cfg(test)]
    pub(crate) fn all_gone(self) -> Result<Vec<OfDriver>, String> {
        self.failed.map_or(Ok(self.of_drivers), Err)
    }

    fn note(&mut self, done: Result<(), String>) {
        if let (Err(e), None) = (done, &self.failed) {
            self.failed = Some(e);
        }
    }
}

/// Tears every volume of the pod down but those of CSI drivers. One that fails does not hold up the others.
pub(crate) fn volumes_of(deps: &Deps, layout: &PodLayout, proof: Proof) -> Result<Left, String> {
    let mut left = Left::default();
    // Binds inside of volumes first: they would keep what they bind.
    let bound = sub_paths(deps, layout, &mut left).map_err(|e| chain(&e))?;
    for (plugin, name) in volumes(&*deps.fs, layout).map_err(|e| chain(&e))? {
        if bound.contains(&name) {
            continue;
        }
        if plugin == CSI {
            left.of_drivers.push(OfDriver::Files(name));
            continue;
        }
        let done = counted("volume_unmount", Some(&plugin), || one(deps, layout, (&plugin, &name), proof));
        left.note(done.map_err(|e| format!("volume {name:?} of {plugin}: {e}")));
    }
    for (plugin, name) in devices(&*deps.fs, layout).map_err(|e| chain(&e))? {
        if plugin == CSI {
            left.of_drivers.push(OfDriver::Device(name));
            continue;
        }
        let done = counted("unmap_volume", Some(&plugin), || device(deps, layout, (&plugin, &name)));
        left.note(done.map_err(|e| format!("device {name:?} of {plugin}: {e}")));
    }
    Ok(left)
}

/// Tears one volume down, by its kind's directory and its name.
pub(crate) fn one(deps: &Deps, layout: &PodLayout, volume: (&str, &str), proof: Proof) -> Result<(), String> {
    let (plugin, name) = volume;
    let (fs, mounts) = (&*deps.fs, &*deps.mounts);
    let failed = |e: HostError| chain(&e);
    let dir = layout.volume(plugin, name).map_err(|e| e.message)?;
    if plugin == NFS {
        // Before anything looks at it: its server may not answer. What the program said is a kubelet's own text.
        let said = |e: HostError| if e.op == "umount" { e.source.to_string() } else { chain(&e) };
        mounts.unmount_share("nfs", &dir).map_err(said)?;
        return fs.remove_empty_dir(&dir).map_err(failed);
    }
    let mounted = mounts.is_mount_point(&dir).map_err(failed)?;
    if plugin == LOCAL_VOLUME || transport(plugin).is_some() {
        // A bind of a directory that is not ours: nothing in it is touched.
        mounts.unmount(&dir).map_err(failed)?;
        return fs.remove_empty_dir(&dir).map_err(failed);
    }
    if !is_made_here(plugin) {
        if mounted {
            return Err("is mounted, and this node cannot unmount volumes of that kind".to_owned());
        }
        return fs.remove_empty_dir(&dir).map_err(failed);
    }
    if mounted {
        let magic = fs.stat_fs(&dir).map_err(failed)?.magic;
        if magic != TMPFS_MAGIC && magic != HUGETLBFS_MAGIC {
            return Err("something is mounted on it that this node did not mount".to_owned());
        }
        mounts.unmount(&dir).map_err(failed)?;
    }
    let marker_dir = layout.marker_dir(plugin, name).map_err(|e| e.message)?;
    let ours = proof == Proof::Ended || is_marked(fs, plugin, &dir, &marker_dir).map_err(failed)?;
    if let (Some(quotas), EMPTY_DIR) = (&deps.quotas, plugin)
        && let Err(e) = quotas.release(&dir)
    {
        tracing::warn!(logger = "volume-manager", dir = %dir.display(), err = chain(&e), "its project is still named");
    }
    let removed = if ours { fs.remove_tree(&dir) } else { fs.remove_empty_dir(&dir) };
    removed.map_err(failed)?;
    // The marker last: until the content is gone it proves that the content may go.
    fs.remove_tree(&marker_dir).map_err(failed)
}

/// Whether a volume shows that it was made by this node, or by a kubelet.
fn is_marked(fs: &dyn HostFs, plugin: &str, dir: &Path, marker_dir: &Path) -> HostResult<bool> {
    if fs.stat_link(&marker(marker_dir))?.is_some() {
        return Ok(true);
    }
    Ok(WRAPPED.contains(&plugin) && volume_root(fs, dir)?.iter().any(|(name, entry)| atomic::is_own(name, entry)))
}

/// Takes a raw volume from the pod.
fn device(deps: &Deps, layout: &PodLayout, (plugin, name): (&str, &str)) -> Result<(), String> {
    let map = DeviceMap::new(layout, plugin, name).map_err(|e| e.message)?;
    if let Some(transport) = transport(plugin) {
        // The name in the pod does not say which disk it is: the pod has none of this kind any more.
        let all = lun_dir::bound_for(&*deps.fs, layout, transport)?;
        let taken = all.into_iter().try_for_each(|dir| map.clone().bound_in(layout, &dir).unmap(deps));
        return taken.and_then(|()| map.forget(&*deps.fs)).map_err(|e| chain(&e));
    }
    if plugin != LOCAL_VOLUME {
        return Err("this node cannot unmap volumes of that kind".to_owned());
    }
    let taken = map.unmap(deps).and_then(|()| map.remove_shared_dir(&*deps.fs)).and_then(|()| map.forget(&*deps.fs));
    taken.map_err(|e| chain(&e))
}

/// Takes binds out of volumes away. Answers with the volumes that still have one, by the names of their directories.
fn sub_paths(deps: &Deps, layout: &PodLayout, left: &mut Left) -> HostResult<BTreeSet<String>> {
    let (fs, root) = (&*deps.fs, layout.sub_paths());
    let mut kept = BTreeSet::new();
    for volume in dirs(fs, &root)? {
        if let Err(e) = sub_paths_of(deps, &root.join(&volume)) {
            left.note(Err(chain(&e)));
            kept.insert(volume);
        }
    }
    if kept.is_empty() {
        fs.remove_empty_dir(&root)?;
    }
    Ok(kept)
}

fn sub_paths_of(deps: &Deps, volume: &Path) -> HostResult<()> {
    let fs = &*deps.fs;
    for container in dirs(fs, volume)? {
        let container = volume.join(container);
        for target in fs.list_dir(&container)? {
            let path = container.join(&target.name);
            deps.mounts.unmount(&path)?;
            remove_target(fs, &path)?;
        }
        fs.remove_empty_dir(&container)?;
    }
    fs.remove_empty_dir(volume)
}

/// Removes the directory of a pod that nobody knows: volumes with their proof, then empty directories below `volumes`, then
/// what the node itself keeps beside them. While there are volumes of CSI drivers, which are the answer, the rest waits.
pub(crate) fn pod_dir(deps: &Deps, layout: &PodLayout) -> Result<Left, String> {
    let fs = &*deps.fs;
    let failed = |e: HostError| chain(&e);
    if fs.stat_link(layout.dir()).map_err(failed)?.is_none() {
        return Ok(Left::default());
    }
    let left = volumes_of(deps, layout, Proof::Marker)?;
    if left.failed.is_some() || !left.of_drivers.is_empty() {
        return Ok(left);
    }
    for kept in [layout.volumes(), layout.block_devices()] {
        for plugin in dirs(fs, &kept).map_err(failed)? {
            fs.remove_empty_dir(&kept.join(plugin)).map_err(failed)?;
        }
        fs.remove_empty_dir(&kept).map_err(failed)?;
    }
    for entry in fs.list_dir(layout.dir()).map_err(failed)? {
        fs.remove_tree(&layout.dir().join(entry.name)).map_err(failed)?;
    }
    fs.remove_empty_dir(layout.dir()).map_err(failed)?;
    Ok(Left::default())
}
