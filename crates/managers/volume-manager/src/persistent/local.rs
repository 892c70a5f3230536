//! Volumes that are paths of this node.

use std::path::Path;
use std::sync::Arc;

use actor::{Class, chain};
use contract::volume::MountedVolume;
use model::core::Pod;
use model::pod;
use ports::host::FileKind;
use volume_plan::source::{Resolved, Source};

use super::job::Job;
use crate::deps::Tools;
use crate::desired::MountRequest;
use crate::failed::Failed;
use crate::host_path;
use crate::layout::{LOCAL_VOLUME, PodLayout};
use crate::ownership::{GroupPolicy, give_volume};
use crate::placed::Placed;
use crate::spec;
use crate::task::cancelled;

/// Makes a path of this node usable.
pub(crate) async fn place(job: &Job<'_>, volume: &Resolved) -> Result<Placed, Failed> {
    let (tools, pod, of, request) = (job.tools.clone(), job.pod.clone(), volume.clone(), job.request.clone());
    let work = move || {
        if !request.is_live() {
            return Err(cancelled().message);
        }
        match &of.source {
            Source::HostPath { path, check } => {
                host_path::check(&*tools.deps.fs, path, check)?;
                Ok((path.into(), false))
            }
            Source::Local { path } => local(&tools, &pod, &of, path, &request).map(|path| (path, true)),
            Source::Csi(_) => Err("volumes of drivers are no paths".to_owned()),
        }
    };
    let uid = pod::uid(job.pod);
    let placed = job.tools.deps.serial.run(&uid, &job.task.effects, Class::UserPaths, work).await;
    let (host_path, selinux_relabel) = placed.map_err(|e: String| job.failed("SetUp", &volume.name, e))?;
    let mounted = MountedVolume { host_path, read_only: volume.read_only, selinux_relabel };
    Ok(Placed { mounted, group: volume.group, republish: false, of: Arc::new(volume.clone()) })
}

/// Binds a directory that was set aside into the pod's folder.
fn local(
    tools: &Tools,
    pod: &Pod,
    volume: &Resolved,
    path: &str,
    request: &MountRequest,
) -> Result<std::path::PathBuf, String> {
    let (fs, mounts) = (&*tools.deps.fs, &*tools.deps.mounts);
    let source = Path::new(path);
    if !source.is_absolute() || path.split('/').any(|part| part == "..") {
        return Err(format!("invalid path {path:?} of a local volume: must be absolute and without '..'"));
    }
    match fs.stat(source).map_err(|e| chain(&e))?.map(|s| s.kind) {
        Some(FileKind::Dir) => {}
        None => return Err(format!("path {path:?} does not exist")),
        Some(FileKind::BlockDevice) => {
            return Err(format!("path {path:?} is a block device: this node mounts directories only"));
        }
        Some(_) => return Err("only directory and block device are supported".to_owned()),
    }
    let layout = PodLayout::new(&tools.config.root_dir, &pod::uid(pod)).map_err(|e| e.message)?;
    let target = layout.volume(LOCAL_VOLUME, &volume.name).map_err(|e| e.message)?;
    if mounts.is_mount_point(&target).map_err(|e| chain(&e))? {
        return Ok(target);
    }
    mounts.bind_within(source, Path::new("."), &target).map_err(|e| chain(&e))?;
    if let (Some(gid), false) = (spec::fs_group(pod), volume.read_only) {
        give_volume(fs, &target, gid, GroupPolicy::of(pod), &|| request.is_live());
    }
    Ok(target)
}
