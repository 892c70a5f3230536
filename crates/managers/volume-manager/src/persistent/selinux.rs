//! The SELinux context of a volume: what its pod wants, and what it is mounted with.

use actor::Class;
use metrics::volumes::{
    SELINUX_ADMITTED, SELINUX_POD_ERRORS, SELINUX_POD_WARNINGS, SELINUX_VOLUME_ERRORS, SELINUX_VOLUME_WARNINGS,
};
use model::pod;
use volume_plan::claim::Mode;
use volume_plan::selinux::{access_mode, conflict, mismatch};
use volume_plan::source::{Csi, Resolved};

use super::files::VolumeDir;
use super::job::Job;
use super::staged;
use crate::failed::Failed;
use crate::registry::Labelled;

/// The context that the pod wants its volume to be mounted with; empty: none. `supported`: by this kind (`plugin`, as metrics name
/// it) of volume.
///
/// # Errors
/// Containers of the pod, or another pod here, want another one.
pub(crate) fn wanted(job: &Job<'_>, volume: &Resolved, plugin: &str, supported: bool) -> Result<String, Failed> {
    let Some(node) = &job.tools.config.selinux else { return Ok(String::new()) };
    let (mode, enforced) = (access_mode(volume), node.mounts(volume));
    let refused = |why: String| Err(Failed::unresolved(job.volume, why));
    let label = match node.label(job.pod, job.volume, supported) {
        Ok(label) => label,
        Err(why) if enforced => {
            SELINUX_POD_ERRORS.with_label_values(&[mode]).inc();
            return refused(why);
        }
        Err(_) => {
            SELINUX_POD_WARNINGS.with_label_values(&[mode]).inc();
            return Ok(String::new());
        }
    };
    let (true, Some(name)) = (supported, volume.unique_name()) else { return Ok(String::new()) };
    match job.tools.deps.persistent.label(&name, &pod::uid(job.pod), &label, enforced) {
        Labelled::Known => {}
        Labelled::First if label.is_empty() => {}
        Labelled::First => SELINUX_ADMITTED.with_label_values(&[plugin, mode]).inc(),
        Labelled::Other(has) if enforced => {
            SELINUX_VOLUME_ERRORS.with_label_values(&[plugin, mode]).inc();
            return refused(conflict(volume, &has, &label));
        }
        Labelled::Other(_) => SELINUX_VOLUME_WARNINGS.with_label_values(&[plugin, mode]).inc(),
    }
    Ok(if enforced { label } else { String::new() })
}

/// The context that the volume is mounted with for this pod: what it wants (`wanted`), or what it has already. A volume that is
/// staged with another one and that nobody has is unstaged first. Only in the volume's turn.
///
/// # Errors
/// Another pod has it with another context.
pub(crate) async fn agreed(
    job: &Job<'_>,
    volume: &Resolved,
    (name, csi): (&str, &Csi),
    wanted: &str,
) -> Result<String, Failed> {
    let (tools, task, uid) = (job.tools, job.task, pod::uid(job.pod));
    if tools.config.selinux.is_none() || csi.is_inline || volume.mode == Mode::Block {
        return Ok(String::new());
    }
    let failed = |e: String| Failed::unresolved(job.volume, e);
    let dir = VolumeDir::staged(&tools.config.root_dir, volume, csi).map_err(failed)?;
    let (fs, at) = (tools.deps.fs.clone(), dir.clone());
    let staged = match task.blocking(Class::HostFiles, move || at.data(&*fs)).await {
        Ok(Some(data)) if data.context != wanted => data.context,
        Ok(_) => return Ok(wanted.to_owned()),
        Err(error) => {
            tracing::warn!(volume = name, error, "what it is mounted with cannot be read");
            return Ok(wanted.to_owned());
        }
    };
    let found = staged::look(tools, task).await.map_err(failed)?;
    if found.users(csi, &volume.name).any(|user| *user == uid) {
        // What a pod runs with stays.
        return Ok(staged);
    }
    if found.users(csi, &volume.name).next().is_some() {
        tools.deps.persistent.unlabel(name, &uid);
        return Err(failed(mismatch(name)));
    }
    let key = (csi.driver.clone(), csi.handle.clone());
    staged::unstage(tools, task, name, &key, &dir).await.map_err(failed)?;
    Ok(wanted.to_owned())
}
