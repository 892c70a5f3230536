//! What is done to one log. Effects: they know nothing of the actor.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use actor::{Class, Clock, Effects};
use container_log::rotation::{self, GZ, Need, TMP, need};
use cri_api::v1;
use model::{ContainerId, Timestamp};
use ports::host::{HostError, HostFs};
use ports::runtime::RuntimeError;

use crate::deps::{Config, Deps};

/// A log that needs something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Log {
    pub(crate) container: ContainerId,
    pub(crate) path: PathBuf,
}

/// What became of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It is fine as it is.
    Nothing,
    /// It was missing; the runtime made it.
    Reopened,
    /// Its old content has this name now.
    Rotated(String),
}

/// Why a log is not rotated. All of it is tried again with the next round.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("host")]
    Host(#[from] HostError),
    #[error("the runtime does not reopen it")]
    Reopen(#[source] RuntimeError),
    #[error("the runtime reopened it, and it is missing all the same")]
    Missing,
    #[error("the path of the log has no file name")]
    NoName,
    /// The runtime did not reopen it, and now the log has a name that nobody looks for until it is reopened.
    #[error("the runtime does not reopen it ({reopen}), and its name cannot be given back")]
    RollBack {
        reopen: RuntimeError,
        #[source]
        source: HostError,
    },
}

/// Those of the logs that need something.
pub(crate) fn in_need(fs: &dyn HostFs, logs: Vec<Log>, max_size: u64) -> Vec<Log> {
    let needy = |log: &Log| match fs.stat(&log.path) {
        Ok(facts) => need(facts.map(|f| f.size), max_size) != Need::Nothing,
        Err(e) => {
            tracing::debug!(path = %log.path.display(), error = %actor::chain(&e), "log cannot be looked at");
            false
        }
    };
    logs.into_iter().filter(needy).collect()
}

/// Gives a log what it needs: it is rotated, or opened anew where it is missing.
pub(crate) async fn maintain(
    config: Arc<Config>,
    deps: Arc<Deps>,
    log: Log,
    clock: Clock,
    effects: Effects,
) -> Result<Outcome, Failed> {
    let Some(max_size) = config.max_size else { return Ok(Outcome::Nothing) };
    effects.hit("maintain").await;
    let mut wanted = need(size(&deps, &log, &effects).await?, max_size);
    let reopened = wanted == Need::Reopen;
    if reopened {
        reopen(&deps, &log.container).await.map_err(Failed::Reopen)?;
        wanted = need(size(&deps, &log, &effects).await?, max_size);
    }
    match wanted {
        Need::Nothing if reopened => return Ok(Outcome::Reopened),
        Need::Nothing => return Ok(Outcome::Nothing),
        Need::Reopen => return Err(Failed::Missing),
        Need::Rotate => {}
    }
    let work = (deps.clone(), log.clone(), config.max_files);
    let zone = config.time_zone.clone();
    let rotated = deps.serial.run(&log.container, &effects, Class::HostFiles, move || {
        let (deps, log, max_files) = work;
        make_room(&deps, &log.path, max_files)?;
        let now = Timestamp(clock.unix_nanos());
        rename_away(&*deps.fs, &log.path, |name| rotation::rotated_name(name, now, &zone))
    });
    // Only when this very second has a rotated file already: its name must not be taken from it.
    let Some(rotated) = rotated.await? else { return Ok(Outcome::Nothing) };
    effects.hit("renamed").await;
    if let Err(error) = reopen(&deps, &log.container).await {
        effects.hit("roll-back").await;
        roll_back(&deps, &log, rotated, &error, &effects).await?;
        return Err(Failed::Reopen(error));
    }
    effects.hit("reopened").await;
    Ok(Outcome::Rotated(rotated))
}

async fn size(deps: &Arc<Deps>, log: &Log, effects: &Effects) -> Result<Option<u64>, HostError> {
    let (fs, path) = (deps.fs.clone(), log.path.clone());
    deps.serial
        .run(&log.container, effects, Class::HostFiles, move || Ok(fs.stat(&path)?.map(|facts| facts.size)))
        .await
}

async fn reopen(deps: &Deps, container: &ContainerId) -> Result<(), RuntimeError> {
    let request = v1::ReopenContainerLogRequest { container_id: container.as_str().to_owned() };
    deps.runtime.reopen_container_log(request).await
}

fn folder_and_name(path: &Path) -> Result<(&Path, &str), Failed> {
    path.parent().zip(path.file_name().and_then(|n| n.to_str())).ok_or(Failed::NoName)
}

/// Removes what is too old or left over, and compresses what was rotated before.
fn make_room(deps: &Deps, path: &Path, max_files: u32) -> Result<(), Failed> {
    let (folder, name) = folder_and_name(path)?;
    let entries = deps.fs.list_dir(folder)?;
    let listing: BTreeSet<String> = entries.into_iter().filter(|e| !e.is_dir).map(|e| e.name).collect();
    let plan = rotation::plan(name, &listing, max_files);
    for old in &plan.remove {
        deps.fs.remove_file(&folder.join(old))?;
    }
    for plain in &plan.compress {
        let (from, tmp) = (folder.join(plain), folder.join(format!("{plain}{TMP}")));
        if let Err(e) = deps.compress.compress(&from, &tmp) {
            // The disk is full, most probably. What was begun must not take what is left of it, and a log that is not
            // rotated would grow without end; rotated files are no more than `max_files`, compressed or not.
            let _ = deps.fs.remove_file(&tmp);
            tracing::warn!(path = %from.display(), error = %actor::chain(&e), "a rotated log is not compressed; next try with the next rotation");
            continue;
        }
        deps.fs.rename(&tmp, &folder.join(format!("{plain}{GZ}")))?;
        deps.fs.remove_file(&from)?;
    }
    Ok(())
}

/// Gives the log its rotated name; `None` when that is taken.
fn rename_away(
    fs: &dyn HostFs,
    path: &Path,
    rotated_name: impl FnOnce(&str) -> String,
) -> Result<Option<String>, Failed> {
    let (folder, name) = folder_and_name(path)?;
    let rotated = rotated_name(name);
    let taken = [rotated.clone(), format!("{rotated}{GZ}")];
    for name in &taken {
        if fs.stat_link(&folder.join(name))?.is_some() {
            return Ok(None);
        }
    }
    fs.rename(path, &folder.join(&rotated))?;
    Ok(Some(rotated))
}

/// Gives the log its name back, unless the runtime made a new one after all (an answer that was lost): what is written to
/// that would be gone.
async fn roll_back(
    deps: &Arc<Deps>,
    log: &Log,
    rotated: String,
    reopen: &RuntimeError,
    effects: &Effects,
) -> Result<(), Failed> {
    let (fs, path): (Arc<dyn HostFs>, PathBuf) = (deps.fs.clone(), log.path.clone());
    let back = deps.serial.run(&log.container, effects, Class::HostFiles, move || match fs.stat_link(&path)? {
        Some(_) => Ok(()),
        None => fs.rename(&path.with_file_name(rotated), &path),
    });
    back.await.map_err(|source| Failed::RollBack { reopen: reopen.clone(), source })
}
