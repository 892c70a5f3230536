//! What is there of volumes that no pod has any more: it is taken away, whoever made it.

use std::collections::BTreeSet;
use std::time::Duration;

use actor::{Class, chain};
use contract::node::NodeOrigin;
use metrics::volumes::RECONSTRUCTED_ERRORS;
use model::PodUid;
use model::core::PersistentVolume;
use ports::api::ApiExt;
use volume_plan::names::{local_name, unique_name};
use volume_plan::source::{Source, of_persistent_volume};

use super::files::{self, Found, Stray, VolumeDir};
use super::lun;
use super::resolve::api;
use super::staged::{look, see, unstage};
use super::unmount::unmap_stray;
use crate::deps::Tools;
use crate::layout::PodLayout;
use crate::lun_dir::{self, FoundLun, LunDir};
use crate::measure::{LOCAL_PLUGIN, UNMAP_DEVICE, UNMOUNT_DEVICE, counted_as, counted_of};
use crate::references;
use crate::task::TaskContext;
use crate::unreadable::Unreadable;

/// Between two looks while neither the disk nor the API server says what is in use.
const AGAIN: Duration = Duration::from_secs(1);

/// What a look at the disk found.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// What nobody has.
    pub idle: Vec<Idle>,
    /// Until the next one may be tried again.
    pub wait: Option<Duration>,
}

/// A volume that nobody has.
#[derive(Clone, Debug)]
pub(crate) struct Idle {
    pub name: String,
    what: What,
}

/// What is left of it.
#[derive(Clone, Debug)]
enum What {
    /// A driver staged it, by driver and handle.
    Staged((String, String), VolumeDir),
    /// A driver published it to a pod.
    Published(Stray),
    /// The disk of a local volume is mounted, by the name of the PersistentVolume.
    Disk(String),
    /// The host reaches a disk over a network.
    Lun(LunDir),
}

async fn look_for_luns(tools: &Tools, task: &TaskContext) -> Result<Vec<FoundLun>, String> {
    let (deps, root) = (tools.deps.clone(), tools.config.root_dir.clone());
    task.blocking(Class::HostFiles, move || lun_dir::found(&deps, &root)).await.map_err(|e| chain(&e))
}

/// Volumes that pods may have by directories that do not say so, as the API server tells them by the directories' names, and
/// whether these are all: else it may be any.
async fn concealed(tools: &Tools, found: &Found) -> (BTreeSet<(String, String)>, bool) {
    let (mut out, mut are_all) = (BTreeSet::new(), true);
    for Unreadable { path, published, error } in &found.unreadable {
        tracing::warn!(path = %path.display(), error, "a volume of a driver is left alone: what it is cannot be read");
        let Some((uid, name)) = published else { continue };
        match volume_called(tools, uid, name).await {
            Ok(volume) => out.extend(volume),
            Err(e) => {
                tracing::warn!(path = %path.display(), error = e, "it may be any volume: none is unstaged");
                are_all = false;
            }
        }
    }
    (out, are_all)
}

/// Driver and handle of the volume whose directory in a pod has this name; `None`: one that is never staged.
async fn volume_called(tools: &Tools, uid: &PodUid, name: &str) -> Result<Option<(String, String)>, String> {
    let pod = tools.deps.desired.get(uid).map(|d| d.pod);
    let volumes = pod.iter().flat_map(|p| p.spec.iter()).flat_map(|s| s.volumes.iter().flatten());
    if volumes.into_iter().any(|v| v.name == name && v.csi.is_some()) {
        return Ok(None);
    }
    let found: PersistentVolume = api(tools)?.get(None, name).await.map_err(|e| e.to_string())?;
    match of_persistent_volume(&found, false)?.source {
        Source::Csi(csi) => Ok(Some((csi.driver, csi.handle))),
        _ => Err(format!("PersistentVolume {name} is of no driver")),
    }
}

/// What the Node told of volumes in use when it was last heard of; `None`: it was not yet.
fn told_in_use(tools: &Tools) -> Option<BTreeSet<String>> {
    let view = tools.node.get();
    let node = view.node.as_ref().filter(|_| view.origin == NodeOrigin::Api)?;
    let told = node.status.as_ref().and_then(|status| status.volumes_in_use.clone());
    Some(told.unwrap_or_default().into_iter().collect())
}

/// Looks what drivers have done here. What that changes of the volumes in use is posted.
pub(crate) async fn sweep(tools: &Tools, task: &TaskContext) -> Sweep {
    let volumes = &tools.deps.persistent;
    let number = volumes.begin_look();
    let (found, luns) = (see(tools, task).await, look_for_luns(tools, task).await);
    let unlisted: Vec<&String> = found.unlisted.iter().map(|u| &u.error).chain(luns.as_ref().err()).collect();
    for error in &unlisted {
        tracing::warn!(error, "volumes cannot be listed: none is unstaged or unmounted");
    }
    let is_whole = unlisted.is_empty();
    let luns = luns.unwrap_or_default();
    volumes.note_unreadable(found.unreadable.iter().chain(&found.unlisted).cloned().collect());
    let (concealed, are_all) = concealed(tools, &found).await;
    let name = |(driver, handle): &(String, String)| unique_name(driver, handle);
    let of_drivers = found.staged.keys().chain(found.published.keys()).chain(&concealed).map(name);
    let of_luns = luns.iter().map(|found| found.dir.key());
    let there = of_drivers.chain(found.disks.keys().map(|disk| local_name(disk))).chain(of_luns).collect();
    let is_first = if is_whole {
        volumes.note_disk(number, &there)
    } else {
        volumes.note_part_of_disk(&there, told_in_use(tools))
    };
    if is_first {
        let unread = found.unreadable.iter().filter(|u| u.published.is_some()).count();
        RECONSTRUCTED_ERRORS.inc_by(u64::try_from(unread).unwrap_or(u64::MAX));
        remove_cut_off(tools, task, found.cut_off.clone()).await;
    }
    // New volumes wait for this, whatever cannot be read.
    tools.post_in_use();
    if !is_whole && volumes.in_use().is_none() {
        // The API server has not said yet what the Node told of before.
        return Sweep { wait: tools.deps.api.is_some().then_some(AGAIN), ..Sweep::default() };
    }
    if !is_whole {
        return Sweep::default();
    }
    if !are_all {
        return Sweep::default();
    }
    let strays = found.strays.iter().filter(|s| !volumes.is_wanted_by(&name(&s.key), &s.pod));
    let strays = strays.map(|s| (Idle { name: name(&s.key), what: What::Published(s.clone()) }, Some(s.pod.clone())));
    let idle = |name: &String| !volumes.is_wanted(name);
    let is_used = |key: &(String, String)| found.published.contains_key(key) || concealed.contains(key);
    let staged = found.staged.iter().filter(|(key, _)| idle(&name(key)) && !is_used(key));
    let staged =
        staged.map(|(key, dir)| (Idle { name: name(key), what: What::Staged(key.clone(), dir.clone()) }, None));
    let disks = found.disks.iter().filter(|(disk, is_used)| !**is_used && idle(&local_name(disk)));
    let disks = disks.map(|(disk, _)| (Idle { name: local_name(disk), what: What::Disk(disk.clone()) }, None));
    let luns = luns.into_iter().filter(|found| !found.is_used && idle(&found.dir.key()));
    let luns = luns.map(|found| (Idle { name: found.dir.key(), what: What::Lun(found.dir) }, None));
    let mut out = Sweep::default();
    for (idle, part) in strays.chain(staged).chain(disks).chain(luns) {
        match volumes.wait(&idle.name, &part, task.clock.now()) {
            Some((wait, _)) => out.wait = Some(out.wait.map_or(wait, |w| w.min(wait))),
            None => out.idle.push(idle),
        }
    }
    out
}

/// Takes away what a daemon left that was killed before the first word of a volume was on the disk, or after the last was gone.
/// Once in a process, for in its life such a directory is one that is being made: nor is it taken away while that is done.
async fn remove_cut_off(tools: &Tools, task: &TaskContext, dirs: Vec<VolumeDir>) {
    let places = tools.deps.persistent.places();
    for dir in dirs {
        let (deps, root, at) = (tools.deps.clone(), tools.config.root_dir.clone(), dir.target.clone());
        let work = move || dir.remove_cut_off(&deps, &root);
        if let Err(error) = task.serially((&places, &at), Class::HostFiles, work).await {
            tracing::warn!(error, "a directory without a volume stays");
        }
    }
    let (deps, root) = (tools.deps.clone(), tools.config.root_dir.clone());
    let work = move || {
        if let Err(error) = lun_dir::remove_cut_off(&deps, &root) {
            tracing::warn!(error = chain(&error), "a directory without a disk stays");
        }
    };
    task.blocking(Class::HostFiles, work).await;
}

/// Takes a volume away, unless somebody has come to have it.
pub(crate) async fn undo(tools: &Tools, task: &TaskContext, idle: &Idle) {
    let volumes = &tools.deps.persistent;
    let part = match &idle.what {
        // It takes the volume's turn itself.
        What::Published(stray) => Some(stray.pod.clone()),
        What::Staged(..) | What::Disk(_) | What::Lun(_) => None,
    };
    let done = match &idle.what {
        What::Published(stray) => unpublish(tools, task, stray).await,
        What::Staged(key, dir) => unused(tools, task, idle, key, dir).await,
        What::Disk(disk) => unmount_disk(tools, task, disk).await,
        What::Lun(dir) => lun::undo(tools, task, dir).await,
    };
    match done {
        Ok(()) => volumes.succeeded(&idle.name, &part),
        Err(error) => {
            tracing::warn!(volume = idle.name, error, "UnmountDevice failed, trying again");
            volumes.failed(&idle.name, &part, task.clock.now(), &error);
        }
    }
}

async fn unpublish(tools: &Tools, task: &TaskContext, stray: &Stray) -> Result<(), String> {
    let layout = PodLayout::new(&tools.config.root_dir, &stray.pod).map_err(|e| e.message)?;
    unmap_stray(tools, &stray.pod, &layout, &stray.name, task).await
}

async fn unused(
    tools: &Tools,
    task: &TaskContext,
    idle: &Idle,
    key: &(String, String),
    dir: &VolumeDir,
) -> Result<(), String> {
    let volumes = &tools.deps.persistent;
    let task = &task.in_turn(volumes.turn(&idle.name)).await;
    let found = look(tools, task).await?;
    let (concealed, true) = concealed(tools, &found).await else { return Ok(()) };
    let is_used = found.published.contains_key(key) || concealed.contains(key);
    if volumes.is_wanted(&idle.name) || is_used || !found.staged.contains_key(key) {
        return Ok(());
    }
    let operation = if dir.is_of_device() { UNMAP_DEVICE } else { UNMOUNT_DEVICE };
    counted_of(operation, (&key.0, false), unstage(tools, task, &idle.name, key, dir)).await
}

async fn unmount_disk(tools: &Tools, task: &TaskContext, disk: &str) -> Result<(), String> {
    let (volumes, name) = (&tools.deps.persistent, local_name(disk));
    let task = &task.in_turn(volumes.turn(&name)).await;
    if volumes.is_wanted(&name) || look(tools, task).await?.disks.get(disk) != Some(&false) {
        return Ok(());
    }
    let (deps, root) = (tools.deps.clone(), tools.config.root_dir.clone());
    let at = files::disk_dir(&root, disk)?;
    let work = move || {
        references::check(&*deps.mounts, &root, &at)?;
        deps.mounts.unmount(&at).and_then(|()| deps.fs.remove_empty_dir(&at)).map_err(|e| chain(&e))
    };
    counted_as(UNMOUNT_DEVICE, LOCAL_PLUGIN, task.blocking(Class::UserPaths, work)).await
}
