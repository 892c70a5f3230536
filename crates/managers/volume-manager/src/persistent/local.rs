//! Volumes that are paths of this node.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use actor::{Class, chain};
use contract::volume::MountedVolume;
use model::core::Pod;
use model::pod;
use ports::host::FileKind;
use volume_plan::claim::Mode;
use volume_plan::names::local_name;
use volume_plan::source::{Resolved, Source};

use super::files::disk_dir;
use super::grow;
use super::job::Job;
use super::one_pod::only_pod;
use crate::deps::Tools;
use crate::desired::MountRequest;
use crate::device_map::DeviceMap;
use crate::failed::{Failed, GROW};
use crate::host_path;
use crate::layout::{LOCAL_VOLUME, PodLayout};
use crate::ownership::{GroupPolicy, give_volume};
use crate::placed::Placed;
use crate::spec;
use crate::task::cancelled;

/// A step that failed, and why.
type Step<T> = Result<T, (&'static str, String)>;

/// A path that is usable.
struct Local {
    /// For containers.
    at: PathBuf,
    /// What a raw volume is had by, when that is new.
    mapped: Option<DeviceMap>,
    /// What a raw volume is bound on.
    bound: Option<PathBuf>,
    /// Where its disk is mounted for all pods.
    disk: Option<PathBuf>,
    is_labelled: bool,
}

impl Local {
    fn files(at: PathBuf, disk: Option<PathBuf>) -> Self {
        Self { at, mapped: None, bound: None, disk, is_labelled: true }
    }
}

/// Makes a path of this node usable.
pub(crate) async fn place(job: &Job<'_>, volume: &Resolved) -> Result<Placed, Failed> {
    let (tools, pod, of, request) = (job.tools.clone(), job.pod.clone(), volume.clone(), job.request.clone());
    let (uid, name, volumes) = (pod::uid(job.pod), local_name(&volume.name), &job.tools.deps.persistent);
    let is_local = matches!(volume.source, Source::Local { .. });
    if is_local {
        // Its disk stays mounted until the end of the pod.
        job.want(&name, &volume.name, false)?;
    }
    let turn = volumes.turn(&name);
    let _turn = if is_local { Some(turn.lock().await) } else { None };
    if is_local {
        only_pod(job, volume, LOCAL_VOLUME).await.map_err(|e| job.failed("MountDevice", &volume.name, e))?;
    }
    let work = move || {
        if !request.is_live() {
            return Err(("SetUp", cancelled().message));
        }
        match &of.source {
            Source::HostPath { path, check } => {
                host_path::check(&*tools.deps.fs, path, check).map_err(|e| ("SetUp", e))?;
                Ok(Local { is_labelled: false, ..Local::files(path.into(), None) })
            }
            Source::Local { path, fs_type } => local(&tools, &pod, &of, (path, fs_type), &request),
            Source::Csi(_) | Source::Nfs { .. } | Source::Lun(_) => {
                Err(("SetUp", "it is no path of this node".to_owned()))
            }
        }
    };
    let placed: Step<Local> = job.tools.deps.serial.run(&uid, &job.task.effects, Class::UserPaths, work).await;
    let placed = placed.map_err(|(step, e)| job.failed(step, &volume.name, e))?;
    if let Some(map) = placed.mapped {
        job.tell_mapped(&volume.name, &map);
    }
    if let Some(disk) = &placed.disk {
        let Job { tools, task, pod, .. } = *job;
        let step = grow::Step { tools, task, pod, volume, at: disk };
        step.at_mount().await.map_err(|e| job.failed(GROW, &volume.name, e))?;
    }
    let selinux_relabel = placed.is_labelled && !volume.read_only;
    let mounted = MountedVolume { host_path: placed.at, read_only: volume.read_only, selinux_relabel };
    Ok(Placed { mounted, bound: placed.bound, group: volume.group, republish: false, of: Arc::new(volume.clone()) })
}

/// A directory that was set aside is bound into the pod's folder, a disk is mounted for all pods first, or mapped.
fn local(
    tools: &Tools,
    pod: &Pod,
    volume: &Resolved,
    (path, fs_type): (&str, &str),
    request: &MountRequest,
) -> Step<Local> {
    let source = Path::new(path);
    let set_up = |e: String| ("SetUp", e);
    if !source.is_absolute() || path.split('/').any(|part| part == "..") {
        return Err(set_up(format!("invalid path {path:?} of a local volume: must be absolute and without '..'")));
    }
    let found = tools.deps.fs.stat(source).map_err(|e| set_up(chain(&e)))?.map(|s| s.kind);
    let layout = PodLayout::new(&tools.config.root_dir, &pod::uid(pod)).map_err(|e| set_up(e.message))?;
    let at = || layout.volume(LOCAL_VOLUME, &volume.name).map_err(|e| set_up(e.message));
    match (found, volume.mode) {
        (None, _) => Err(set_up(format!("path {path:?} does not exist"))),
        (Some(_), Mode::Block) => map(tools, &layout, volume, source).map_err(|e| ("MapBlockVolume", e)),
        (Some(FileKind::Dir), _) => {
            Ok(Local::files(bind(tools, pod, &at()?, volume, source, request).map_err(set_up)?, None))
        }
        (Some(FileKind::BlockDevice), _) => {
            let disk = mount_disk(tools, volume, source, fs_type).map_err(|e| ("MountDevice", e))?;
            Ok(Local::files(bind(tools, pod, &at()?, volume, &disk, request).map_err(set_up)?, Some(disk)))
        }
        _ => Err(set_up("only directory and block device are supported".to_owned())),
    }
}

fn map(tools: &Tools, layout: &PodLayout, volume: &Resolved, device: &Path) -> Result<Local, String> {
    let map = DeviceMap::new(layout, LOCAL_VOLUME, &volume.name).map_err(|e| e.message)?;
    let was_there = map.intend(&*tools.deps.fs, device).map_err(|e| chain(&e))?;
    map.map(&tools.deps, device).map_err(|e| chain(&e))?;
    let (at, bound) = (map.link.clone(), Some(map.bound().to_owned()));
    Ok(Local { at, bound, mapped: (!was_there).then_some(map), disk: None, is_labelled: false })
}

/// Mounts a disk for all pods. The first of them says whether it may be written to.
fn mount_disk(tools: &Tools, volume: &Resolved, device: &Path, fs_type: &str) -> Result<PathBuf, String> {
    let target = disk_dir(&tools.config.root_dir, &volume.name)?;
    let read_only = volume.read_only.then(|| "ro".to_owned());
    let options: Vec<String> = volume.mount_options.iter().cloned().chain(read_only).collect();
    let mounted = tools.deps.mounts.mount_device(device, &target, fs_type, &options);
    mounted.map_err(|e| {
        let why = chain(&e);
        if let Err(e) = tools.deps.fs.remove_empty_dir(&target) {
            tracing::warn!(error = chain(&e), "the mount point of a disk that was not mounted stays");
        }
        let device = device.display();
        format!("local: failed to mount device {device} at {} (fstype: {fs_type}), error {why}", target.display())
    })?;
    Ok(target)
}

/// Binds a directory of this node, or of a disk, into the pod's folder, and gives it to the pod's group.
pub(super) fn bind(
    tools: &Tools,
    pod: &Pod,
    target: &Path,
    volume: &Resolved,
    source: &Path,
    request: &MountRequest,
) -> Result<PathBuf, String> {
    let (fs, mounts) = (&*tools.deps.fs, &*tools.deps.mounts);
    if mounts.is_mount_point(target).map_err(|e| chain(&e))? {
        return Ok(target.to_owned());
    }
    mounts.bind_within(source, Path::new("."), target).map_err(|e| chain(&e))?;
    if let (Some(gid), false) = (spec::fs_group(pod), volume.read_only) {
        give_volume(fs, target, gid, GroupPolicy::of(pod), &|| request.is_live());
    }
    Ok(target.to_owned())
}
