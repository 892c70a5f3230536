//! Volumes that are staged and that no pod has any more: they are unstaged, whoever staged them.

use std::collections::BTreeSet;
use std::time::Duration;

use actor::Class;
use csi_api::v1::NodeUnstageVolumeRequest;
use volume_plan::names::unique_name;
use volume_plan::state::Mount;

use super::calls::{Ability, Driver};
use super::files::{self, Found, VolumeDir};
use crate::deps::Tools;
use crate::task::TaskContext;

/// What a look at the disk found.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// Staged volumes that nobody has: name, driver, handle and place.
    pub idle: Vec<Idle>,
    /// Until the next one may be tried again.
    pub wait: Option<Duration>,
}

/// A staged volume that nobody has.
#[derive(Clone, Debug)]
pub(crate) struct Idle {
    pub name: String,
    driver: String,
    handle: String,
    dir: VolumeDir,
}

async fn look(tools: &Tools, task: &TaskContext) -> Result<Found, String> {
    let (fs, root) = (tools.deps.fs.clone(), tools.config.root_dir.clone());
    task.effects.blocking(Class::HostFiles, move || files::found(&*fs, &root)).await
}

/// Looks what drivers have done here. What that changes of the volumes in use is posted.
pub(crate) async fn sweep(tools: &Tools, task: &TaskContext) -> Sweep {
    let found = match look(tools, task).await {
        Ok(found) => found,
        Err(e) => {
            tracing::warn!(error = e, "volumes of drivers cannot be listed: none is unstaged");
            return Sweep::default();
        }
    };
    let volumes = &tools.deps.persistent;
    let name = |(driver, handle): &(String, String)| unique_name(driver, handle);
    let there: BTreeSet<String> = found.staged.keys().chain(found.published.keys()).map(name).collect();
    volumes.note_disk(&there);
    tools.post_in_use();
    let mut out = Sweep::default();
    for (key, dir) in found.staged {
        let name = name(&key);
        if found.published.contains_key(&key) || volumes.is_wanted(&name) {
            continue;
        }
        match volumes.wait(&name, &None, task.clock.now()) {
            Some((wait, _)) => out.wait = Some(out.wait.map_or(wait, |w| w.min(wait))),
            None => out.idle.push(Idle { name, driver: key.0, handle: key.1, dir }),
        }
    }
    out
}

/// Unstages a volume, unless somebody has come to have it.
pub(crate) async fn undo(tools: &Tools, task: &TaskContext, idle: &Idle) {
    let volumes = &tools.deps.persistent;
    let turn = volumes.turn(&idle.name);
    let _turn = turn.lock().await;
    let done = match look(tools, task).await {
        Ok(found) => {
            let key = (idle.driver.clone(), idle.handle.clone());
            if volumes.is_wanted(&idle.name) || found.published.contains_key(&key) || !found.staged.contains_key(&key) {
                return;
            }
            unstage(tools, task, idle).await
        }
        Err(e) => Err(e),
    };
    match done {
        Ok(()) => volumes.succeeded(&idle.name, &None),
        Err(error) => {
            tracing::warn!(volume = idle.name, error, "UnmountDevice failed, trying again");
            volumes.failed(&idle.name, &None, task.clock.now(), &error);
        }
    }
}

async fn unstage(tools: &Tools, task: &TaskContext, idle: &Idle) -> Result<(), String> {
    let (volumes, part) = (&tools.deps.persistent, None);
    volumes.note(&idle.name, &part, Mount::Uncertain);
    let driver = Driver::find(tools, task, &idle.driver).await.map_err(|e| e.text)?;
    if driver.can(Ability::StageUnstageVolume) {
        let staging_target_path = idle.dir.target.to_string_lossy().into_owned();
        let request = NodeUnstageVolumeRequest { volume_id: idle.handle.clone(), staging_target_path };
        driver.unstage((&idle.name, &part), request).await.map_err(|e| e.text)?;
    }
    let (deps, dir) = (tools.deps.clone(), idle.dir.clone());
    task.effects.blocking(Class::UserPaths, move || dir.remove(&deps)).await?;
    volumes.note(&idle.name, &part, Mount::Absent);
    Ok(())
}
