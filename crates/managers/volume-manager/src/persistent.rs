//! Volumes that outlive pods, and those that a CSI driver makes for one (node-and-resources 6.2, 6.3, 6.13).
//!
//! What is *present* is on the disk: a `vol_data.json` is written before a driver is called, synced while it works, and removed
//! after it undid what it had done. So whatever has such a file may be there, whoever made it, and is undone by the same file after any
//! death; a kubelet does the same, with the same files. What is *wanted* is in [`Volumes`], with what this process saw of the
//! drivers' answers. One operation at a time per volume; a driver that hangs holds up its own volumes.

mod calls;
mod expected;
mod files;
mod grow;
mod job;
mod local;
mod lun;
mod mount;
mod one_pod;
mod place;
mod resize;
mod resolve;
mod selinux;
mod share;
mod staged;
mod steps;
mod sweep;
mod unmount;

use std::sync::Arc;

use futures::future::join_all;
use model::core::{Pod, Volume};
use model::pod;
use volume_plan::attach::Attachment;
use volume_plan::claim::Mode;
use volume_plan::csi::driver_rules;
use volume_plan::source::Source;

use crate::deps::Tools;
use crate::desired::MountRequest;
use crate::failed::{Failed, NODE_AFFINITY};
use crate::placed::{Outcomes, Placed};
use crate::spec::{self, Kind};
use crate::task::TaskContext;
use job::Job;

pub(crate) use expected::Expected;
pub(crate) use grow::{Outgrown, grow, outgrown};
pub(crate) use sweep::{Idle, sweep, undo};
pub(crate) use unmount::{describe, unmount};

/// One try on all persistent volumes that a pod uses. For a pod without, nothing.
/// `expected`: what was looked up before for it.
pub(crate) async fn mount_all(
    tools: &Tools,
    pod: &Arc<Pod>,
    request: &MountRequest,
    task: &TaskContext,
    expected: &Expected,
) -> Outcomes {
    let wanted = spec::used_volumes(pod).into_iter().filter(|(_, kind)| *kind == Kind::Persistent);
    let tries = wanted.map(|(volume, _)| async {
        let job = Job { tools, pod, request, task, volume: &volume.name };
        let out = one(&job, volume, expected).await;
        if let Err(failed) = &out {
            let volumes = &tools.deps.persistent;
            volumes.note_error(&pod::uid(pod), &volume.name, &failed.error, || request.is_live());
        }
        (volume.name.clone(), out)
    });
    join_all(tries).await.into_iter().collect()
}

/// Whether one of these volumes is not attached because the node has no place for another one, as its driver says. Only of drivers
/// that may be asked again how many places there are: it is asked, so that the scheduler knows.
pub(crate) async fn is_node_full(tools: &Tools, pod: &Arc<Pod>, failed: &[Failed], task: &TaskContext) -> bool {
    let waits = |volume: &Volume| failed.iter().any(|f| f.is_unattached() && f.volume == volume.name);
    for (volume, _) in spec::used_volumes(pod).into_iter().filter(|(volume, _)| waits(volume)) {
        // What cannot be asked for now says nothing: the pod waits on.
        let Ok(wanted) = resolve::resolve(tools, pod, volume).await else { continue };
        let Source::Csi(csi) = &wanted.volume.source else { continue };
        if !calls::rules(tools, &csi.driver).await.is_ok_and(|rules| rules.update_period.is_some()) {
            continue;
        }
        if matches!(calls::attachment(tools, csi).await, Ok(Attachment::Exhausted(_))) {
            calls::refresh(tools, task, &csi.driver).await;
            return true;
        }
    }
    false
}

/// Whether a driver wants to be told of the volume again: as its object says by now, or said when it was last told.
fn is_republished(tools: &Tools, placed: &Placed) -> bool {
    let Source::Csi(csi) = &placed.of.source else { return false };
    let object = tools.drivers.get(&csi.driver).and_then(|row| row.object.clone());
    object.map_or(placed.republish, |object| driver_rules(Some(&object)).republish)
}

async fn one(job: &Job<'_>, volume: &Volume, expected: &Expected) -> Result<Placed, Failed> {
    let (volumes, uid) = (&job.tools.deps.persistent, pod::uid(job.pod));
    // What is in place costs nothing at a step: neither the API server nor the driver is asked.
    if let Some(placed) = volumes.placed(&uid, job.volume).filter(|placed| !is_republished(job.tools, placed)) {
        return Ok(placed);
    }
    let asked = match expected.wanted(job.volume).await {
        Some(wanted) => Ok(wanted),
        None => resolve::resolve(job.tools, job.pod, volume).await,
    };
    let wanted = match asked {
        Ok(wanted) => wanted,
        // What is in place stays so, whatever became of the claim.
        Err(error) => return volumes.placed(&uid, job.volume).ok_or_else(|| Failed::unresolved(job.volume, error)),
    };
    let wanted_here = wanted.elsewhere.map_or(Ok(()), |why| Err(job.failed(NODE_AFFINITY, &wanted.volume.name, why)));
    let placed = match (wanted_here, &wanted.volume.source) {
        (Err(failed), _) => Err(failed),
        (Ok(()), Source::Csi(csi)) => mount::mount(job, &wanted.volume, csi).await,
        (Ok(()), Source::Lun(lun)) => lun::mount(job, &wanted.volume, lun).await,
        (Ok(()), of) => {
            selinux::wanted(job, &wanted.volume, "", false)?;
            match of {
                Source::Nfs { .. } => share::mount(job, &wanted.volume).await,
                _ => local::place(job, &wanted.volume).await,
            }
        }
    };
    let placed = if wanted.volume.mode == Mode::Block { placed.map_err(Failed::of_device) } else { placed };
    if let Ok(placed) = &placed {
        volumes.note_placed(&uid, job.volume, placed.clone(), || job.request.is_live());
    }
    placed
}
