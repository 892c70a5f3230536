//! The board of pod directories: what the root directory shows.

use std::collections::BTreeSet;
use std::sync::Arc;

use actor::{Class, Effects};
use contract::volume::PodVolumes;
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
    if error.is_some() || !tells(tools, uid, std::iter::empty()) {
        post(tools, uid, error);
    }
}

/// Whether the row of a pod tells already of these volumes, and of no trouble: then its directory need not be read once more.
pub(crate) fn tells<'a>(tools: &Tools, uid: &PodUid, mut volumes: impl Iterator<Item = &'a String>) -> bool {
    tools.rows.get(uid).is_some_and(|row| row.error.is_none() && volumes.all(|name| row.present.contains(name)))
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
