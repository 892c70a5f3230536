//! Volumes with the access mode ReadWriteOncePod (KEP-2485): that no two pods of a node have one.

use actor::{Class, chain};
use model::pod;
use volume_plan::claim::Mode;
use volume_plan::csi::is_for_one_pod;
use volume_plan::source::Resolved;

use super::job::Job;
use crate::deps::Deps;
use crate::device_map::DeviceMap;
use crate::layout::{PodLayout, pods};
use crate::listing::dirs;

/// A kubelet's own words.
pub(super) const IN_USE: &str = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";

/// That no other pod has a volume that is for one pod, as their folders say: so it is after any death, too. `plugin`: name of the
/// kind's directories in pods.
///
/// # Errors
/// One has it, or that cannot be found out.
pub(super) async fn only_pod(job: &Job<'_>, volume: &Resolved, plugin: &'static str) -> Result<(), String> {
    if !is_for_one_pod(volume) {
        return Ok(());
    }
    let (deps, root, own) = (job.tools.deps.clone(), job.tools.config.root_dir.clone(), pod::uid(job.pod));
    let (name, mode) = (volume.name.clone(), volume.mode);
    let work = move || {
        for uid in dirs(&*deps.fs, &pods(&root)).map_err(|e| chain(&e))? {
            let uid = uid.into();
            if uid == own {
                continue;
            }
            let layout = PodLayout::new(&root, &uid).map_err(|e| e.message)?;
            if has(&deps, &layout, plugin, &name, mode)? {
                return Err(IN_USE.to_owned());
            }
        }
        Ok(())
    };
    job.task.effects.blocking(Class::HostFiles, work).await
}

fn has(deps: &Deps, layout: &PodLayout, plugin: &str, name: &str, mode: Mode) -> Result<bool, String> {
    let found = match mode {
        Mode::Filesystem => deps.mounts.is_mount_point(&layout.volume(plugin, name).map_err(|e| e.message)?),
        Mode::Block => DeviceMap::new(layout, plugin, name).map_err(|e| e.message)?.is_there(&*deps.fs),
    };
    found.map_err(|e| chain(&e))
}
