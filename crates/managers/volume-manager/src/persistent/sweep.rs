//! Volumes that are staged and that no pod has any more: they are unstaged, whoever staged them.

use std::collections::BTreeSet;
use std::time::Duration;

use actor::Class;
use csi_api::v1::NodeUnstageVolumeRequest;
use model::PodUid;
use model::core::PersistentVolume;
use ports::api::ApiExt;
use volume_plan::names::unique_name;
use volume_plan::source::{Source, of_persistent_volume};
use volume_plan::state::Mount;

use super::calls::{Ability, Driver};
use super::files::{self, Found, VolumeDir};
use super::resolve::api;
use crate::deps::Tools;
use crate::measure::counted_of;
use crate::task::TaskContext;
use crate::unreadable::Unreadable;

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

/// Volumes that pods may have by directories that do not say so, as the API server tells them by the directories' names;
/// `None`: it does not, so it may be any.
async fn concealed(tools: &Tools, found: &Found) -> Option<BTreeSet<(String, String)>> {
    let mut out = BTreeSet::new();
    for Unreadable { path, published, error } in &found.unreadable {
        tracing::warn!(path = %path.display(), error, "a volume of a driver is left alone: what it is cannot be read");
        let Some((uid, name)) = published else { continue };
        match volume_called(tools, uid, name).await {
            Ok(volume) => out.extend(volume),
            Err(e) => {
                tracing::warn!(path = %path.display(), error = e, "it may be any volume: none is unstaged");
                return None;
            }
        }
    }
    Some(out)
}

/// Driver and handle of the volume whose directory in a pod has this name; `None`: one that is never staged.
async fn volume_called(tools: &Tools, uid: &PodUid, name: &str) -> Result<Option<(String, String)>, String> {
    let pod = tools.deps.desired.get(uid).map(|d| d.pod);
    let volumes = pod.iter().flat_map(|p| p.spec.iter()).flat_map(|s| s.volumes.iter().flatten());
    if volumes.into_iter().any(|v| v.name == name && v.csi.is_some()) {
        return Ok(None);
    }
    let found: PersistentVolume = api(tools)?.get(None, name).await.map_err(|e| e.to_string())?;
    match of_persistent_volume(&found, false)?.source {
        Source::Csi(csi) => Ok(Some((csi.driver, csi.handle))),
        _ => Err(format!("PersistentVolume {name} is of no driver")),
    }
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
    volumes.note_unreadable(&found.unreadable);
    let Some(concealed) = concealed(tools, &found).await else { return Sweep::default() };
    let name = |(driver, handle): &(String, String)| unique_name(driver, handle);
    let there: BTreeSet<String> =
        found.staged.keys().chain(found.published.keys()).chain(&concealed).map(name).collect();
    volumes.note_disk(&there);
    tools.post_in_use();
    let mut out = Sweep::default();
    for (key, dir) in found.staged {
        let name = name(&key);
        if found.published.contains_key(&key) || concealed.contains(&key) || volumes.is_wanted(&name) {
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
            let Some(concealed) = concealed(tools, &found).await else { return };
            let is_used = found.published.contains_key(&key) || concealed.contains(&key);
            if volumes.is_wanted(&idle.name) || is_used || !found.staged.contains_key(&key) {
                return;
            }
            counted_of("unmount_device", &idle.driver, unstage(tools, task, idle)).await
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
