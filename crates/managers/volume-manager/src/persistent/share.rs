//! Volumes that servers share: NFS.

use std::path::Path;
use std::sync::Arc;

use actor::{Class, chain};
use contract::volume::MountedVolume;
use model::pod;
use ports::host::HostError;
use volume_plan::names::share_name;
use volume_plan::share::{Share, share};
use volume_plan::source::Resolved;
use volume_plan::state::Mount;

use super::job::Job;
use crate::deps::Deps;
use crate::failed::Failed;
use crate::layout::{NFS, PodLayout};
use crate::measure::{MOUNT, NFS_PLUGIN, counted_as};
use crate::placed::Placed;
use crate::task::cancelled;

/// Mounts what a server shares into the pod's folder. A server that does not answer holds up this pod alone.
pub(crate) async fn mount(job: &Job<'_>, volume: &Resolved) -> Result<Placed, Failed> {
    let (tools, request, uid) = (job.tools, job.request.clone(), pod::uid(job.pod));
    let failed = |why: String| job.failed("SetUp", &volume.name, why);
    let share = share(volume).ok_or_else(|| failed("it is not shared by a server".to_owned()))?;
    let layout = PodLayout::new(&tools.config.root_dir, &uid).map_err(|e| failed(e.message))?;
    let target = layout.volume(NFS, &volume.name).map_err(|e| failed(e.message))?;
    let (volumes, clock) = (&tools.deps.persistent, &job.task.clock);
    let (name, part) = (share_name(&uid, &volume.name), Some(uid.clone()));
    job.want(&name, &volume.name, false)?;
    let task = job.task.in_turn(volumes.turn(&name)).await;
    if let Some(wait) = volumes.wait(&name, &part, clock.now()) {
        return Err(Failed::backing_off(job.volume, wait));
    }
    let (deps, at) = (tools.deps.clone(), target.clone());
    let work = move || {
        if !request.is_live() {
            return Err(cancelled().message);
        }
        place(&deps, &share, &at)
    };
    let doing = volumes.doing(&name, &part, "mount", clock.now());
    let run = task.serially((&tools.deps.serial, &uid), Class::UserPaths, work);
    let placed = counted_as(MOUNT, NFS_PLUGIN, run).await;
    drop(doing);
    if let Err(error) = placed {
        let wait = volumes.failed(&name, &part, clock.now(), &error);
        return Err(failed(error).again_in(wait));
    }
    volumes.succeeded(&name, &part);
    volumes.note(&name, &part, Mount::Present);
    let mounted = MountedVolume { host_path: target, read_only: volume.read_only, selinux_relabel: false };
    Ok(Placed { mounted, bound: None, group: volume.group, republish: false, of: Arc::new(volume.clone()) })
}

fn place(deps: &Deps, share: &Share, target: &Path) -> Result<(), String> {
    let done = deps.mounts.mount_share((share.kind, &share.source), &share.options, target);
    // What the program said is a kubelet's own text.
    done.map_err(|e: HostError| if e.op == "mount" { e.source.to_string() } else { chain(&e) })
}
