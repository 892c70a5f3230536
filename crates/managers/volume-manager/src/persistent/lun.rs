//! Disks that the host reaches over a network: iSCSI, Fibre Channel. One try to get one to one pod, and taking it from the host when
//! no pod has it any more.
//!
//! The directory of a disk (`lun_dir.rs`) is made before the host is asked for the disk and goes after all else: what has one is
//! undone after any death, whoever made it.

mod fc;
mod host;
mod iscsi;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use actor::chain;
use contract::volume::MountedVolume;
use metrics::Stopwatch;
use model::{PodUid, pod};
use volume_plan::attach::by_node;
use volume_plan::claim::Mode;
use volume_plan::lun::{Lun, Transport};
use volume_plan::selinux::{mismatch, mounted_context, with_context};
use volume_plan::source::Resolved;
use volume_plan::state::Mount;

use super::job::Job;
use super::local::{Binding, Must};
use super::one_pod::only_pod;
use super::selinux;
use crate::deps::Tools;
use crate::device_map::DeviceMap;
use crate::failed::Failed;
use crate::layout::PodLayout;
use crate::lun_dir::{FoundLun, LunDir};
use crate::measure::{MOUNT, UNMAP_DEVICE, UNMOUNT_DEVICE, attached_as, counted_as};
use crate::placed::Placed;
use crate::progress::Progress;
use crate::registry::Volumes;
use crate::task::{TaskContext, cancelled};
use host::Host;

/// A step that failed, and why.
type Step<T> = Result<T, (&'static str, String)>;

const ATTACH: &str = "WaitForAttach";
const MOUNT_DEVICE: &str = "MountDevice";
const SET_UP: &str = "SetUp";
const MAP: &str = "MapBlockVolume";

/// Gets the disk to the pod, as far as it can be now.
pub(crate) async fn mount(job: &Job<'_>, volume: &Resolved, lun: &Lun) -> Result<Placed, Failed> {
    let (tools, uid) = (job.tools, pod::uid(job.pod));
    let (volumes, config) = (&tools.deps.persistent, &tools.config);
    let (key, attach_name) = (lun.key(), lun.attach_name());
    let failed = |step, e: String| job.failed(step, &volume.name, e);
    if !job.request.is_live() {
        return Err(failed(SET_UP, cancelled().message));
    }
    let kind = format!("kubernetes.io/{}", lun.transport().kind());
    let context = selinux::wanted(job, volume, &kind, volume.mode == Mode::Filesystem)?;
    job.want(&key, &volume.name, true)?;
    volumes.is_attached_as(&key, &attach_name);
    tools.post_in_use();
    // To attach one is nothing but a word of the controller that it is for this node.
    if config.controller_attach_detach && tools.deps.api.is_some() {
        let (watch, told) = (Stopwatch::start(), by_node(tools.node.get().node.as_deref(), &attach_name));
        told.map_err(|why| Failed::unattached(job.volume, why))?;
        if volumes.is_newly_attached(&key) {
            attached_as(&kind, &watch);
        }
    }
    let dir = LunDir::new(&config.root_dir, lun, volume.mode).map_err(|e| failed(ATTACH, e))?;
    let task = job.task.in_turn(volumes.turn(&key)).await;
    let job = &Job { task: &task, ..*job };
    if !job.request.is_live() {
        return Err(failed(SET_UP, cancelled().message));
    }
    let part = Some(uid.clone());
    if let Some(wait) = volumes.wait(&key, &part, job.task.clock.now()) {
        return Err(Failed::backing_off(job.volume, wait));
    }
    let operation = if volume.mode == Mode::Block { "map_volume" } else { MOUNT };
    let host = Host { tools, task: job.task, key: &key };
    let bound = (volume.mode == Mode::Block).then(|| dir.path.join(uid.as_str()));
    let work = Try { job, volume, lun, dir, uid, host, context };
    match counted_as(operation, &kind, work.run()).await {
        Ok((host_path, context)) => {
            volumes.succeeded(&key, &part);
            volumes.note(&key, &part, Mount::Present);
            let read_only = volume.read_only;
            let mounted = MountedVolume { host_path, read_only, selinux_relabel: !read_only && context.is_empty() };
            Ok(Placed { mounted, bound, group: volume.group, republish: false, of: Arc::new(volume.clone()) })
        }
        Err((step, error)) => {
            let wait = volumes.failed(&key, &part, job.task.clock.now(), &error);
            Err(failed(step, error).again_in(wait))
        }
    }
}

/// A disk, with all that a try needs to know of it.
struct Try<'a> {
    job: &'a Job<'a>,
    volume: &'a Resolved,
    lun: &'a Lun,
    dir: LunDir,
    uid: PodUid,
    host: Host<'a>,
    /// The SELinux context that the pod wants it to be mounted with; empty: none.
    context: String,
}

impl Try<'_> {
    fn volumes(&self) -> &Volumes {
        &self.job.tools.deps.persistent
    }

    /// Answers with the path for containers, and the context that the disk is mounted with.
    async fn run(&self) -> Step<(PathBuf, String)> {
        let layout = PodLayout::new(&self.job.tools.config.root_dir, &self.uid).map_err(|e| (SET_UP, e.message))?;
        match self.volume.mode {
            Mode::Filesystem => {
                let context = self.agreed(&layout).await?;
                self.only_pod().await.map_err(|e| (MOUNT_DEVICE, e))?;
                self.mount_for_all(&context).await?;
                Ok((self.bind(&layout).await.map_err(|e| (SET_UP, e))?, context))
            }
            Mode::Block => {
                self.only_pod().await.map_err(|e| (MAP, e))?;
                let device = self.attach().await?.ok_or((ATTACH, "it is mounted".to_owned()))?;
                Ok((self.map(layout, device).await.map_err(|e| (MAP, e))?, String::new()))
            }
        }
    }

    async fn only_pod(&self) -> Result<(), String> {
        only_pod(self.job, self.volume).await
    }

    /// The context that the disk is mounted with for this pod: what the pod wants, or what it runs with already. A disk that is
    /// mounted with another one and that nobody has is unmounted first.
    async fn agreed(&self, layout: &PodLayout) -> Step<String> {
        let failed = |e: String| (MOUNT_DEVICE, e);
        if self.job.tools.config.selinux.is_none() {
            return Ok(String::new());
        }
        let own = layout.volume(self.lun.transport().plugin(), &self.volume.name).map_err(|e| failed(e.message))?;
        let (at, wanted) = (self.dir.path.clone(), self.context.clone());
        let root = self.job.tools.config.root_dir.clone();
        let table = self.host.look(move |deps| deps.mounts.mount_table(&root).map_err(|e| chain(&e))).await;
        let table = table.map_err(failed)?;
        let Some(mounted) = table.iter().rfind(|line| line.at == at) else { return Ok(wanted) };
        let has = mounted_context(&mounted.options);
        if has == wanted || table.iter().any(|line| line.at == own) {
            return Ok(has);
        }
        if table.iter().any(|line| line.device == mounted.device && line.at != at) {
            self.volumes().unlabel(self.host.key, &self.uid);
            return Err(failed(mismatch(self.host.key)));
        }
        self.host.unmount(&at).await.map_err(failed)?;
        Ok(wanted)
    }

    /// Has the host reach the disk. Answers with the path of its device; `None`: it is mounted already.
    async fn attach(&self) -> Step<Option<String>> {
        let (dir, file) = (
            self.dir.clone(),
            match self.lun {
                Lun::Iscsi(disk) => Some(disk.file(&self.volume.name)),
                Lun::Fc(_) => None,
            },
        );
        let made = self.host.look(move |deps| dir.intend(deps, file.as_deref())).await;
        let (found, is_mounted) = made.map_err(|e| (ATTACH, e))?;
        self.volumes().intend(self.host.key, &None, found);
        if is_mounted {
            return Ok(None);
        }
        let device = match self.lun {
            Lun::Iscsi(disk) => iscsi::attach(&self.host, self.job.pod, disk).await,
            Lun::Fc(disk) => fc::attach(&self.host, disk, &self.dir).await,
        };
        device.map(Some).map_err(|e| (ATTACH, e))
    }

    /// Mounts the disk for all pods. The first of them says whether it may be written to.
    async fn mount_for_all(&self, context: &str) -> Step<()> {
        if let Some(device) = self.attach().await? {
            let read_only = self.volume.read_only.then(|| "ro".to_owned());
            let options: Vec<String> = self.volume.mount_options.iter().cloned().chain(read_only).collect();
            let options = with_context(&options, context);
            let (at, fs_type) = (self.dir.path.clone(), self.lun.fs_type().to_owned());
            let work = move |deps: &crate::Deps| {
                let mounted = deps.mounts.mount_device(Path::new(&device), &at, &fs_type, &options);
                mounted.map_err(|e| chain(&e))
            };
            let _doing = self.host.doing("mount");
            self.host.look(work).await.map_err(|e| (MOUNT_DEVICE, e))?;
        }
        self.volumes().note(self.host.key, &None, Mount::Present);
        Ok(())
    }

    /// Binds what is mounted for all pods into the pod's folder.
    async fn bind(&self, layout: &PodLayout) -> Result<PathBuf, String> {
        let target = layout.volume(self.lun.transport().plugin(), &self.volume.name).map_err(|e| e.message)?;
        self.volumes().intend(self.host.key, &Some(self.uid.clone()), false);
        let (tools, pod, volume) = (self.job.tools.clone(), self.job.pod.clone(), self.volume.clone());
        let (source, request) = (self.dir.path.clone(), self.job.request.clone());
        let (progress, at) = (Progress::default(), target.clone());
        let walk = progress.clone();
        let work = move |_: &crate::Deps| {
            if !request.is_live() {
                return Err(cancelled().message);
            }
            let (tools, pod, volume, request) = (&tools, &*pod, &volume, &request);
            Binding { tools, pod, volume, request, progress: &walk, target: &at }.bind(&source, Some(Must::BeTried))
        };
        self.job.tell_progress(&progress, &target, self.host.of_pod(&self.uid, work)).await?;
        Ok(target)
    }

    /// Binds the device for the pod, and holds it open.
    async fn map(&self, layout: PodLayout, device: String) -> Result<PathBuf, String> {
        let plugin = self.lun.transport().plugin();
        let map = DeviceMap::new(&layout, plugin, &self.volume.name).map_err(|e| e.message)?;
        let map = map.bound_in(&layout, &self.dir.path);
        let (of, request) = (map.clone(), self.job.request.clone());
        let work = move |deps: &crate::Deps| {
            if !request.is_live() {
                return Err(cancelled().message);
            }
            let was_there = of.intend(&*deps.fs, Path::new(&device)).map_err(|e| chain(&e))?;
            of.map(deps, Path::new(&device)).map_err(|e| chain(&e))?;
            Ok(was_there)
        };
        if !self.host.of_pod(&self.uid, work).await? {
            self.job.tell_mapped(&self.volume.name, &map);
        }
        self.volumes().note(self.host.key, &None, Mount::Present);
        Ok(map.link)
    }
}

/// Takes a disk from the host, unless somebody has come to have it.
pub(crate) async fn undo(tools: &Tools, task: &TaskContext, dir: &LunDir) -> Result<(), String> {
    let (volumes, key) = (&tools.deps.persistent, dir.key());
    let task = &task.in_turn(volumes.turn(&key)).await;
    let host = Host { tools, task, key: &key };
    let all = host.found().await?;
    if volumes.is_wanted(&key) || !all.iter().any(|found| found.dir == *dir && !found.is_used) {
        return Ok(());
    }
    let kind = format!("kubernetes.io/{}", dir.transport.kind());
    let operation = if dir.mode == Mode::Block { UNMAP_DEVICE } else { UNMOUNT_DEVICE };
    counted_as(operation, &kind, take(&host, dir, &all)).await
}

async fn take(host: &Host<'_>, dir: &LunDir, all: &[FoundLun]) -> Result<(), String> {
    let volumes = &host.tools.deps.persistent;
    volumes.intend(host.key, &None, true);
    volumes.note(host.key, &None, Mount::Uncertain);
    let doing = host.doing("unmount");
    let source = host.unmount(&dir.path).await?;
    drop(doing);
    // The same disk, mounted and raw at once.
    let is_left = all.iter().any(|found| found.dir != *dir && found.dir.key() == dir.key());
    match dir.transport {
        Transport::Iscsi => iscsi::detach(host, dir, is_left).await?,
        Transport::Fc if is_left => {}
        Transport::Fc => fc::detach(host, dir, source).await?,
    }
    let gone = dir.clone();
    host.look(move |deps| gone.remove(deps)).await?;
    volumes.note(host.key, &None, Mount::Absent);
    Ok(())
}
