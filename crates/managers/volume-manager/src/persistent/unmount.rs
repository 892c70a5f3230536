//! Taking volumes of drivers from a pod.

use actor::Class;
use csi_api::v1::NodeUnpublishVolumeRequest;
use futures::future::join_all;
use metrics::volumes::{FORCE_CLEANED, FORCE_CLEANED_ERRORS};
use model::PodUid;
use volume_plan::data::VolumeData;
use volume_plan::names::unique_name;
use volume_plan::state::Mount;

use super::calls::{CallFailed, Driver, On};
use super::files::VolumeDir;
use super::place::Place;
use crate::deps::Tools;
use crate::layout::PodLayout;
use crate::measure::counted_of;
use crate::task::TaskContext;
use crate::tear_down::OfDriver;

/// Unpublishes these volumes of a pod, all at once. What is in them is never touched.
///
/// # Errors
/// The first one that cannot be, with its name; the others are tried all the same.
pub(crate) async fn unmount(
    tools: &Tools,
    uid: &PodUid,
    layout: &PodLayout,
    volumes: &[OfDriver],
    task: &TaskContext,
) -> Result<(), String> {
    let tries = volumes.iter().map(|volume| async move {
        let name = volume.name();
        match volume {
            OfDriver::Files(_) => one(tools, uid, Taken::files(layout, name), task)
                .await
                .map_err(|e| format!("UnmountVolume.TearDown failed for volume {name:?}: {e}")),
            OfDriver::Device(_) => one(tools, uid, Taken::device(layout, name), task)
                .await
                .map_err(|e| format!("UnmapVolume.UnmapPodDevice failed for volume {name:?}: {e}")),
        }
    });
    join_all(tries).await.into_iter().collect()
}

/// Takes a raw volume that was left in the middle of being taken from a pod, unless the pod has come to have it again.
pub(crate) async fn unmap_stray(
    tools: &Tools,
    uid: &PodUid,
    layout: &PodLayout,
    name: &str,
    task: &TaskContext,
) -> Result<(), String> {
    let taken = Taken::device(layout, name).map(|taken| Taken { is_stray: true, ..taken });
    one(tools, uid, taken, task).await
}

/// What is taken from a pod.
struct Taken {
    /// Where the file is that says which volume it is.
    file: VolumeDir,
    place: Place,
    /// Only while the pod has no link to it.
    is_stray: bool,
}

impl Taken {
    fn files(layout: &PodLayout, name: &str) -> Result<Self, String> {
        let file = VolumeDir::publish(layout, name)?;
        Ok(Self { place: Place::Files(file.clone()), file, is_stray: false })
    }

    fn device(layout: &PodLayout, name: &str) -> Result<Self, String> {
        let (file, place) = (VolumeDir::device(layout.root(), name)?, Place::device(layout, name)?);
        Ok(Self { file, place, is_stray: false })
    }
}

async fn one(tools: &Tools, uid: &PodUid, of: Result<Taken, String>, task: &TaskContext) -> Result<(), String> {
    let Taken { file, place, is_stray } = of?;
    let fs = tools.deps.fs.clone();
    let blocking = |work: Box<dyn FnOnce() -> Result<(), String> + Send>| task.blocking(Class::UserPaths, work);
    let said = task.blocking(Class::UserPaths, move || file.data(&*fs)).await;
    if said.is_err() {
        FORCE_CLEANED.inc();
        FORCE_CLEANED_ERRORS.inc();
    }
    let Some(data) = said? else {
        // Nothing was ever asked of the driver; what is mounted there all the same is somebody else's.
        let deps = tools.deps.clone();
        return blocking(Box::new(move || place.remove(&deps))).await;
    };
    let (volume, part) = (unique_name(&data.driver, &data.handle), Some(uid.clone()));
    let volumes = &tools.deps.persistent;
    let task = &task.in_turn(volumes.turn(&volume)).await;
    if is_stray {
        let (deps, at) = (tools.deps.clone(), place.clone());
        let is_linked = task.blocking(Class::UserPaths, move || at.is_linked(&deps)).await?;
        if is_linked || volumes.is_wanted_by(&volume, uid) {
            return Ok(());
        }
    }
    // What a former process published is found to be so, too, when the driver refuses now.
    volumes.intend(&volume, &part, true);
    volumes.note(&volume, &part, Mount::Uncertain);
    let driver = data.driver.clone();
    let operation = if matches!(place, Place::Files(_)) { "volume_unmount" } else { "unmap_volume" };
    let work = take(tools, task, &data, &place, (&volume, &part));
    counted_of(operation, (&driver, false), work).await?;
    volumes.note(&volume, &part, Mount::Absent);
    Ok(())
}

/// Has the driver take the volume, and removes what was made for it.
async fn take(tools: &Tools, task: &TaskContext, data: &VolumeData, place: &Place, on: On<'_>) -> Result<(), String> {
    let (deps, at) = (tools.deps.clone(), place.clone());
    task.blocking(Class::UserPaths, move || at.unmap(&deps)).await?;
    let driver = Driver::find(tools, task, &data.driver).await.map_err(|e: CallFailed| e.text)?;
    let target_path = place.target().to_string_lossy().into_owned();
    let request = NodeUnpublishVolumeRequest { volume_id: data.handle.clone(), target_path };
    driver.unpublish(on, request).await.map_err(|e| e.text)?;
    let (deps, place) = (tools.deps.clone(), place.clone());
    let remove = move || place.clear(&deps).and_then(|()| place.remove(&deps));
    task.blocking(Class::UserPaths, remove).await
}

/// What the volumes of a pod wait for now, for those who ask too long.
pub(crate) fn describe(tools: &Tools, uid: &PodUid, task: &TaskContext) -> Option<String> {
    let calls = tools.deps.persistent.calls_of(uid, task.clock.now());
    (!calls.is_empty()).then(|| calls.join("; "))
}
