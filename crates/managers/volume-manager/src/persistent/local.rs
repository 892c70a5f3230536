//! Volumes that are paths of this node.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use actor::{Class, chain};
use contract::volume::MountedVolume;
use model::core::Pod;
use model::event::EventType;
use model::{PodUid, pod};
use ports::host::FileKind;
use volume_plan::claim::Mode;
use volume_plan::names::{host_path_name, local_name};
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
use crate::measure::{HOST_PATH_PLUGIN, LOCAL_PLUGIN, MOUNT, counted_as};
use crate::ownership::{GroupPolicy, give_volume};
use crate::placed::Placed;
use crate::progress::Progress;
use crate::references;
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
    /// What users are to hear of it.
    told: Option<String>,
    is_labelled: bool,
}

impl Local {
    fn files(at: PathBuf) -> Self {
        Self { at, mapped: None, bound: None, disk: None, told: None, is_labelled: true }
    }
}

/// Makes a path of this node usable, as far as it can be now.
pub(crate) async fn place(job: &Job<'_>, volume: &Resolved) -> Result<Placed, Failed> {
    let (uid, volumes, clock) = (pod::uid(job.pod), &job.tools.deps.persistent, &job.task.clock);
    let (name, plugin) = match volume.source {
        Source::Local { .. } => (local_name(&volume.name), LOCAL_PLUGIN),
        _ => (host_path_name(&uid, &volume.name), HOST_PATH_PLUGIN),
    };
    let part = Some(uid.clone());
    // A disk stays mounted until the end of the pod.
    job.want(&name, &volume.name, false)?;
    let task = job.task.in_turn(volumes.turn(&name)).await;
    let job = &Job { task: &task, ..*job };
    if let Some(wait) = volumes.wait(&name, &part, clock.now()) {
        return Err(Failed::backing_off(job.volume, wait));
    }
    let operation = if volume.mode == Mode::Block { "map_volume" } else { MOUNT };
    let placed = match counted_as(operation, plugin, steps(job, volume, &uid)).await {
        Ok(placed) => placed,
        Err((step, error)) => {
            let wait = volumes.failed(&name, &part, clock.now(), &error);
            return Err(job.failed(step, &volume.name, error).again_in(wait));
        }
    };
    volumes.succeeded(&name, &part);
    let selinux_relabel = placed.is_labelled && !volume.read_only;
    let mounted = MountedVolume { host_path: placed.at, read_only: volume.read_only, selinux_relabel };
    Ok(Placed { mounted, bound: placed.bound, group: volume.group, republish: false, of: Arc::new(volume.clone()) })
}

async fn steps(job: &Job<'_>, volume: &Resolved, uid: &PodUid) -> Step<Local> {
    if matches!(volume.source, Source::Local { .. }) {
        only_pod(job, volume).await.map_err(|e| ("MountDevice", e))?;
    }
    let (tools, pod, of, request) = (job.tools.clone(), job.pod.clone(), volume.clone(), job.request.clone());
    let layout = PodLayout::new(&tools.config.root_dir, uid).map_err(|e| ("SetUp", e.message))?;
    let target = layout.volume(LOCAL_VOLUME, &volume.name).map_err(|e| ("SetUp", e.message))?;
    let (progress, at) = (Progress::default(), target.clone());
    let walk = progress.clone();
    let work = move || {
        if !request.is_live() {
            return Err(("SetUp", cancelled().message));
        }
        match &of.source {
            Source::HostPath { path, check } => {
                host_path::check(&*tools.deps.fs, path, check).map_err(|e| ("SetUp", e))?;
                Ok(Local { is_labelled: false, ..Local::files(path.into()) })
            }
            Source::Local { path, fs_type } => {
                let binding =
                    Binding { tools: &tools, pod: &pod, volume: &of, request: &request, progress: &walk, target: &at };
                local(&binding, &layout, (path, fs_type))
            }
            Source::Csi(_) | Source::Nfs { .. } | Source::Lun(_) => {
                Err(("SetUp", "it is no path of this node".to_owned()))
            }
        }
    };
    let run = job.task.serially((&job.tools.deps.serial, uid), Class::UserPaths, work);
    let placed: Local = job.tell_progress(&progress, &target, run).await?;
    if let Some(map) = &placed.mapped {
        job.tell_mapped(&volume.name, map);
    }
    if let Some(told) = &placed.told {
        job.tell(EventType::Warning, "AlreadyMountedVolume", told.clone());
    }
    let Job { tools, task, pod, .. } = *job;
    let step = grow::Step { tools, task, pod, volume, at: placed.disk.as_deref() };
    step.at_mount().await.map_err(|e| (GROW, e))?;
    Ok(placed)
}

/// A directory that was set aside is bound into the pod's folder, a disk is mounted for all pods first, or mapped.
fn local(binding: &Binding<'_>, layout: &PodLayout, (path, fs_type): (&str, &str)) -> Step<Local> {
    let Binding { tools, volume, .. } = *binding;
    let source = Path::new(path);
    let set_up = |e: String| ("SetUp", e);
    if !source.is_absolute() || path.split('/').any(|part| part == "..") {
        return Err(set_up(format!("invalid path {path:?} of a local volume: must be absolute and without '..'")));
    }
    let found = tools.deps.fs.stat(source).map_err(|e| set_up(chain(&e)))?.map(|s| s.kind);
    let bound = |source: &Path, disk: Option<PathBuf>| {
        let told = binding.shared(source).map_err(set_up)?;
        Ok(Local { disk, told, ..Local::files(binding.target.to_owned()) })
    };
    match (found, volume.mode) {
        (None, _) => Err(set_up(format!("path {path:?} does not exist"))),
        (Some(_), Mode::Block) => map(tools, layout, volume, source).map_err(|e| ("MapBlockVolume", e)),
        (Some(FileKind::Dir), _) => bound(source, None),
        (Some(FileKind::BlockDevice), _) => {
            let disk = mount_disk(tools, volume, source, fs_type).map_err(|e| ("MountDevice", e))?;
            bound(&disk.clone(), Some(disk))
        }
        _ => Err(set_up("only directory and block device are supported".to_owned())),
    }
}

fn map(tools: &Tools, layout: &PodLayout, volume: &Resolved, device: &Path) -> Result<Local, String> {
    let map = DeviceMap::new(layout, LOCAL_VOLUME, &volume.name).map_err(|e| e.message)?;
    let was_there = map.intend(&*tools.deps.fs, device).map_err(|e| chain(&e))?;
    map.map(&tools.deps, device).map_err(|e| chain(&e))?;
    let (at, bound) = (map.link.clone(), Some(map.bound().to_owned()));
    Ok(Local { bound, mapped: (!was_there).then_some(map), is_labelled: false, ..Local::files(at) })
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

/// A directory of this node, or of a disk, in a pod's folder.
pub(super) struct Binding<'a> {
    pub tools: &'a Tools,
    pub pod: &'a Pod,
    pub volume: &'a Resolved,
    pub request: &'a MountRequest,
    pub progress: &'a Progress,
    /// Where the pod has it.
    pub target: &'a Path,
}

/// Whether a pod may have a volume that could not be given to its group as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Must {
    /// A kubelet fails the mount of a directory of the node.
    BeGiven,
    /// And not that of a disk that is reached over a network.
    BeTried,
}

impl Binding<'_> {
    fn is_there(&self) -> Result<bool, String> {
        self.tools.deps.mounts.is_mount_point(self.target).map_err(|e| chain(&e))
    }

    /// Gives it to the pod's group unless it is to be left as it is, and binds it then: what is bound was given, whoever died
    /// meanwhile. What could not be looked at fails it where `must`.
    pub(super) fn bind(&self, source: &Path, gives: Option<Must>) -> Result<(), String> {
        if self.is_there()? {
            return Ok(());
        }
        if let (Some(gid), false, Some(must)) = (spec::fs_group(self.pod), self.volume.read_only, gives) {
            let (fs, policy) = (&*self.tools.deps.fs, GroupPolicy::of(self.pod));
            match give_volume(fs, source, gid, policy, &|| self.request.is_live(), self.progress) {
                Ok(true) => {}
                Ok(false) => return Err(cancelled().message),
                Err(e) if must == Must::BeGiven => return Err(chain(&e)),
                Err(e) => {
                    tracing::warn!(volume = self.volume.name, error = %chain(&e), "a volume was not given to its group")
                }
            }
        }
        self.tools.deps.mounts.bind_within(source, Path::new("."), self.target).map_err(|e| chain(&e))
    }

    /// As [`Binding::bind`], where other pods may have it: these keep it with the group that it has. Answers what users are to hear of
    /// that.
    fn shared(&self, source: &Path) -> Result<Option<String>, String> {
        let (Some(gid), false) = (spec::fs_group(self.pod), self.is_there()?) else {
            self.bind(source, Some(Must::BeGiven))?;
            return Ok(None);
        };
        let Tools { deps, config, .. } = self.tools;
        let is_shared =
            !references::in_pods(&*deps.mounts, &config.root_dir, source).map_err(|e| chain(&e))?.is_empty();
        let has = deps.fs.stat(source).map_err(|e| chain(&e))?.map(|s| s.gid);
        self.bind(source, (!is_shared).then_some(Must::BeGiven))?;
        let other = has.filter(|has| is_shared && *has != gid);
        Ok(other.map(|has| {
            let name = &self.volume.name;
            format!(
                "The requested fsGroup is {gid}, but the volume {name} has GID {has}. The volume may not be shareable."
            )
        }))
    }
}
