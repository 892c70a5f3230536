//! Taking volumes of drivers from a pod.

use actor::Class;
use csi_api::v1::NodeUnpublishVolumeRequest;
use futures::future::join_all;
use model::PodUid;
use volume_plan::data::VolumeData;
use volume_plan::names::unique_name;
use volume_plan::state::Mount;

use super::calls::{CallFailed, Driver, On};
use super::files::VolumeDir;
use crate::deps::Tools;
use crate::layout::PodLayout;
use crate::measure::counted_of;
use crate::task::TaskContext;

/// Unpublishes these volumes of a pod, all at once. What is in them is never touched.
///
/// # Errors
/// The first one that cannot be, with its name; the others are tried all the same.
pub(crate) async fn unmount(
    tools: &Tools,
    uid: &PodUid,
    layout: &PodLayout,
    names: &[String],
    task: &TaskContext,
) -> Result<(), String> {
    let tries = names.iter().map(|name| async move {
        let done = one(tools, uid, layout, name, task).await;
        done.map_err(|e| format!("UnmountVolume.TearDown failed for volume {name:?}: {e}"))
    });
    join_all(tries).await.into_iter().collect()
}

async fn one(tools: &Tools, uid: &PodUid, layout: &PodLayout, name: &str, task: &TaskContext) -> Result<(), String> {
    let dir = VolumeDir::publish(layout, name)?;
    let (fs, at) = (tools.deps.fs.clone(), dir.clone());
    let blocking = |work: Box<dyn FnOnce() -> Result<(), String> + Send>| task.effects.blocking(Class::UserPaths, work);
    let read = move || at.data(&*fs);
    let Some(data) = task.effects.blocking(Class::UserPaths, read).await? else {
        // Nothing was ever asked of the driver; what is mounted there all the same is somebody else's.
        let deps = tools.deps.clone();
        return blocking(Box::new(move || dir.remove(&deps))).await;
    };
    let (volume, part) = (unique_name(&data.driver, &data.handle), Some(uid.clone()));
    let volumes = &tools.deps.persistent;
    let turn = volumes.turn(&volume);
    let _turn = turn.lock().await;
    volumes.note(&volume, &part, Mount::Uncertain);
    let driver = data.driver.clone();
    let work = take(tools, task, &data, &dir, (&volume, &part));
    counted_of("volume_unmount", &driver, work).await?;
    volumes.note(&volume, &part, Mount::Absent);
    Ok(())
}

/// Has the driver take the volume, and removes the directory.
async fn take(tools: &Tools, task: &TaskContext, data: &VolumeData, dir: &VolumeDir, on: On<'_>) -> Result<(), String> {
    let driver = Driver::find(tools, task, &data.driver).await.map_err(|e: CallFailed| e.text)?;
    let target_path = dir.target.to_string_lossy().into_owned();
    let request = NodeUnpublishVolumeRequest { volume_id: data.handle.clone(), target_path };
    driver.unpublish(on, request).await.map_err(|e| e.text)?;
    let (deps, dir) = (tools.deps.clone(), dir.clone());
    task.effects.blocking(Class::UserPaths, move || dir.remove(&deps)).await
}

/// What the volumes of a pod wait for now, for those who ask too long.
pub(crate) fn describe(tools: &Tools, uid: &PodUid, task: &TaskContext) -> Option<String> {
    let calls = tools.deps.persistent.calls_of(uid, task.clock.now());
    (!calls.is_empty()).then(|| calls.join("; "))
}
