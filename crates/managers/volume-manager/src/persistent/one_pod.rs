//! Volumes with the access mode ReadWriteOncePod (KEP-2485): that no two pods of a node have one.

use std::path::Path;

use actor::{Class, chain};
use model::{PodUid, pod};
use volume_plan::claim::{Mode, claim_name};
use volume_plan::csi::is_for_one_pod;
use volume_plan::source::{Resolved, Source};

use super::files;
use super::job::Job;
use crate::deps::{Deps, Tools};
use crate::device_map::{CSI_DEVICES, DeviceMap};
use crate::layout::{LOCAL_VOLUME, PodLayout, pods};
use crate::listing::dirs;

/// A kubelet's own words.
const IN_USE: &str = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";

/// Who has a volume.
#[derive(Debug, Default)]
struct Users {
    /// Pods that have it.
    sure: Vec<PodUid>,
    /// Pods of which that cannot be found out, and why; `None`: any pod may have it.
    unsure: Vec<(Option<PodUid>, String)>,
}

/// That no other pod has a volume that is for one pod, as their folders say: so it is after any death, too.
///
/// # Errors
/// One has it, or that cannot be found out of one that may.
pub(super) async fn only_pod(job: &Job<'_>, volume: &Resolved) -> Result<(), String> {
    if !is_for_one_pod(volume) {
        return Ok(());
    }
    let (deps, root, of) = (job.tools.deps.clone(), job.tools.config.root_dir.clone(), volume.clone());
    let work = move || users(&deps, &root, &of);
    let (users, own) = (job.task.blocking(Class::HostFiles, work).await, pod::uid(job.pod));
    if users.sure.iter().any(|uid| *uid != own) {
        return Err(IN_USE.to_owned());
    }
    let may_have = |of: &Option<PodUid>| of.as_ref().is_none_or(|uid| *uid != own && may_use(job.tools, uid, volume));
    users.unsure.into_iter().find(|(of, _)| may_have(of)).map_or(Ok(()), |(_, error)| Err(error))
}

/// Whether a pod may have the volume by what is known of it: one that is known to use other claims only may not.
fn may_use(tools: &Tools, uid: &PodUid, volume: &Resolved) -> bool {
    let (Some(desired), Some(claim)) = (tools.deps.desired.get(uid), &volume.claim) else { return true };
    let volumes = desired.pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let mut names = volumes.filter_map(|volume| claim_name(&desired.pod, volume));
    pod::namespace(&desired.pod) == claim.namespace && names.any(|name| name.name == claim.name)
}

fn users(deps: &Deps, root: &Path, volume: &Resolved) -> Users {
    match &volume.source {
        Source::Csi(csi) => {
            let found = files::seen(&*deps.fs, root);
            let sure = found.users(csi, &volume.name).cloned().collect();
            let (pods, devices) = (pods(root), root.join(CSI_DEVICES));
            let unsure = found.unlisted.into_iter().filter_map(|unlisted| match unlisted.path.strip_prefix(&pods) {
                Ok(below) => {
                    Some((below.iter().next().map(|uid| uid.to_string_lossy().into_owned().into()), unlisted.error))
                }
                // What is staged is no pod's.
                Err(_) => {
                    let says = volume.mode == Mode::Block && unlisted.path.starts_with(&devices);
                    says.then_some((None, unlisted.error))
                }
            });
            Users { sure, unsure: unsure.collect() }
        }
        Source::Lun(lun) => by_name(deps, root, volume, lun.transport().plugin()),
        Source::Local { .. } | Source::HostPath { .. } | Source::Nfs { .. } => {
            by_name(deps, root, volume, LOCAL_VOLUME)
        }
    }
}

/// By the volume's name in pods. `plugin`: name of the kind's directories there. What is mounted is not touched: its server may be gone.
fn by_name(deps: &Deps, root: &Path, volume: &Resolved, plugin: &str) -> Users {
    let mut out = Users::default();
    let looked = dirs(&*deps.fs, &pods(root)).and_then(|uids| Ok((uids, deps.mounts.mount_table(root)?)));
    let (uids, table) = match looked {
        Ok(looked) => looked,
        Err(e) => return Users { unsure: vec![(None, chain(&e))], ..out },
    };
    for uid in uids.into_iter().map(PodUid::from) {
        let has = PodLayout::new(root, &uid).map_err(|e| e.message).and_then(|layout| match volume.mode {
            Mode::Filesystem => {
                let at = layout.volume(plugin, &volume.name).map_err(|e| e.message)?;
                Ok(table.iter().any(|line| line.at == at))
            }
            Mode::Block => {
                let map = DeviceMap::new(&layout, plugin, &volume.name).map_err(|e| e.message)?;
                map.is_there(&*deps.fs).map_err(|e| chain(&e))
            }
        });
        match has {
            Ok(true) => out.sure.push(uid),
            Ok(false) => {}
            Err(error) => out.unsure.push((Some(uid), error)),
        }
    }
    out
}
