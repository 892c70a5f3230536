//! The board of pod directories: what the root directory shows.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actor::{Class, Effects};
use contract::volume::{MountedVolumes, PodVolumes};
use futures::{StreamExt, stream};
use metrics::volumes::RECONSTRUCTED;
use model::PodUid;

use crate::deps::Tools;
use crate::layout::{PodLayout, pods};
use crate::tear_down;

/// Pods whose directories are read at the same moment.
const AT_ONCE: usize = 4;

/// Posts what the pod's directory shows. Blocks.
pub(crate) fn post(tools: &Tools, uid: &PodUid, error: Option<String>) {
    let Ok(layout) = PodLayout::new(&tools.config.root_dir, uid) else { return };
    let old = tools.rows.get(uid);
    let present = match tear_down::present(&*tools.deps.fs, &layout) {
        Ok(Some(present)) => present,
        Ok(None) => {
            tools.rows.remove(uid);
            return;
        }
        Err(e) => {
            tracing::warn!(%uid, error = %actor::chain(&e), "volumes of the pod cannot be listed: what was known counts on");
            let Some(old) = &old else { return };
            old.present.clone()
        }
    };
    let row = PodVolumes { present, error };
    if old.is_none_or(|old| *old != row) {
        tools.rows.post(uid.clone(), Arc::new(row));
    }
}

/// How the row of a pod is brought in line with work that ended so. Blocks.
pub(crate) type Post = fn(&Tools, &PodUid, Option<String>);

/// As [`post`], after work that made and took away no volume: a row that tells of no trouble is as it should be.
pub(crate) fn note(tools: &Tools, uid: &PodUid, error: Option<String>) {
    placed(tools, uid, &MountedVolumes::default(), error);
}

/// As [`post`], after work that left these volumes in place: a row that tells of no trouble tells of them as well then, and the
/// pod's directory need not be read for that. Blocks where there was or is trouble.
pub(crate) fn placed(tools: &Tools, uid: &PodUid, done: &MountedVolumes, error: Option<String>) {
    let Ok(layout) = PodLayout::new(&tools.config.root_dir, uid) else { return };
    let Some(row) = tools.rows.get(uid).filter(|row| row.error.is_none() && error.is_none()) else {
        return post(tools, uid, error);
    };
    let paths = done.volumes.values().map(|v| &v.host_path).chain(done.devices.values().map(|d| &d.host_path));
    let found = row.present.iter().cloned().chain(paths.filter_map(|path| layout.volume_at(path)));
    let present: Vec<String> = found.collect::<BTreeSet<_>>().into_iter().collect();
    if present != row.present {
        tools.rows.post(uid.clone(), Arc::new(PodVolumes { present, error: None }));
    }
}

/// Pods that have a directory or a row.
pub(crate) async fn known(tools: Tools, effects: Effects) -> BTreeSet<PodUid> {
    effects.hit("rescan").await;
    let of = tools.clone();
    let listing = effects.blocking(Class::HostFiles, move || pod_uids(&of)).await;
    let uids = listing.unwrap_or_else(|e| {
        tracing::warn!(error = %e, "pod directories cannot be listed");
        Vec::new()
    });
    uids.into_iter().chain(tools.rows.snapshot().into_keys()).collect()
}

/// Of these pods, those whose rows may not be as their directories show. Pods that nobody is at and that have a row without trouble are
/// looked at together, in one hop: on a node where nothing happens these are all. `together`: such a look is under way.
pub(crate) async fn changed(
    tools: Tools,
    effects: Effects,
    uids: BTreeSet<PodUid>,
    together: &AtomicBool,
) -> BTreeSet<PodUid> {
    // One look at a time: where one hangs, each pod is looked at for itself.
    if together.swap(true, Ordering::AcqRel) {
        return uids;
    }
    let serial = tools.deps.serial.clone();
    let is_well = |uid: &PodUid| tools.rows.get(uid).is_some_and(|row| row.error.is_none()) && !serial.is_busy(uid);
    let (well, mut out): (BTreeSet<_>, BTreeSet<_>) = uids.into_iter().partition(is_well);
    if !well.is_empty() {
        let look = move || well.into_iter().filter(|uid| !is_shown(&tools, uid)).collect::<BTreeSet<_>>();
        out.extend(effects.blocking(Class::HostFiles, look).await);
    }
    together.store(false, Ordering::Release);
    out
}

/// Whether the row of a pod shows what its directory does. Blocks.
fn is_shown(tools: &Tools, uid: &PodUid) -> bool {
    let Some(row) = tools.rows.get(uid) else { return false };
    let layout = PodLayout::new(&tools.config.root_dir, uid);
    let present = layout.ok().and_then(|layout| tear_down::present(&*tools.deps.fs, &layout).ok().flatten());
    present.is_some_and(|present| present == row.present)
}

/// Brings the rows of these pods in line with their directories. Pods that others are at are left out: their rows are brought
/// in line when that ends, and a call that hangs holds up its own pod only.
pub(crate) async fn rescan(tools: Tools, effects: Effects, uids: BTreeSet<PodUid>) {
    let is_first = tools.deps.persistent.is_first_look();
    let (tools, effects) = (&tools, &effects);
    let serial = &tools.deps.serial;
    let one = |uid: PodUid| async move {
        let (tools, of) = (tools.clone(), uid.clone());
        let update = move || {
            let error = tools.rows.get(&of).and_then(|row| row.error.clone());
            post(&tools, &of, error);
            if is_first {
                let found = tools.rows.get(&of).map_or(0, |row| row.present.len());
                RECONSTRUCTED.inc_by(u64::try_from(found).unwrap_or(u64::MAX));
            }
        };
        // In turn with other work on the pod: a row never tells of the past.
        serial.run(&uid, effects, Class::HostFiles, update).await;
    };
    let free = uids.into_iter().filter(|uid| !serial.is_busy(uid));
    stream::iter(free).for_each_concurrent(AT_ONCE, one).await;
}

fn pod_uids(tools: &Tools) -> Result<Vec<PodUid>, String> {
    match tools.deps.fs.list_dir(&pods(&tools.config.root_dir)) {
        Ok(entries) => Ok(entries.into_iter().filter(|e| e.is_dir).map(|e| PodUid::from(e.name)).collect()),
        Err(e) if e.is_not_found() => Ok(Vec::new()),
        Err(e) => Err(actor::chain(&e)),
    }
}
