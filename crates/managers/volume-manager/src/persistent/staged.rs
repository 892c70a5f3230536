//! What drivers have staged, as their directories say, and having it taken back.

use actor::Class;
use csi_api::v1::NodeUnstageVolumeRequest;
use volume_plan::state::Mount;

use super::calls::{Ability, Driver};
use super::files::{self, Found, VolumeDir};
use crate::deps::Tools;
use crate::references;
use crate::task::TaskContext;

/// Looks which volumes are there, as far as that can be seen.
pub(super) async fn see(tools: &Tools, task: &TaskContext) -> Found {
    let (fs, root) = (tools.deps.fs.clone(), tools.config.root_dir.clone());
    task.blocking(Class::HostFiles, move || files::seen(&*fs, &root)).await
}

/// Looks which volumes are there.
///
/// # Errors
/// Not all of it can be seen.
pub(super) async fn look(tools: &Tools, task: &TaskContext) -> Result<Found, String> {
    let (fs, root) = (tools.deps.fs.clone(), tools.config.root_dir.clone());
    task.blocking(Class::HostFiles, move || files::found(&*fs, &root)).await
}

/// Has the driver take back what it staged. Only in the volume's turn, while no pod has it.
///
/// # Errors
/// Nothing was asked of the driver while somebody else has what it mounted for all pods.
pub(super) async fn unstage(
    tools: &Tools,
    task: &TaskContext,
    name: &str,
    (driver, handle): &(String, String),
    dir: &VolumeDir,
) -> Result<(), String> {
    let (volumes, part) = (&tools.deps.persistent, None);
    let (deps, root, at) = (tools.deps.clone(), tools.config.root_dir.clone(), dir.target.clone());
    if !dir.is_of_device() {
        task.blocking(Class::HostFiles, move || references::check(&*deps.mounts, &root, &at)).await?;
    }
    // What a former process staged is found to be so, too, when the driver refuses now.
    volumes.intend(name, &part, true);
    volumes.note(name, &part, Mount::Uncertain);
    let driver = Driver::find(tools, task, driver).await.map_err(|e| e.text)?;
    if driver.can(Ability::StageUnstageVolume) {
        let staging_target_path = dir.target.to_string_lossy().into_owned();
        let request = NodeUnstageVolumeRequest { volume_id: handle.clone(), staging_target_path };
        driver.unstage((name, &part), request).await.map_err(|e| e.text)?;
    }
    let (deps, dir) = (tools.deps.clone(), dir.clone());
    task.blocking(Class::UserPaths, move || dir.remove_staged(&deps)).await?;
    volumes.note(name, &part, Mount::Absent);
    Ok(())
}
