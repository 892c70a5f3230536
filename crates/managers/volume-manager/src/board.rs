//! The board of pod directories: what the root directory shows.

use std::sync::Arc;

use actor::{Class, Effects};
use contract::volume::PodVolumes;
use model::PodUid;

use crate::deps::Tools;
use crate::layout::{PodLayout, pods};
use crate::tear_down;

/// Posts what the pod's directory shows. Blocks.
pub(crate) fn post(tools: &Tools, uid: &PodUid, error: Option<String>) {
    let Ok(layout) = PodLayout::new(&tools.config.root_dir, uid) else { return };
    match tear_down::present(&*tools.deps.fs, &layout) {
        Some(present) => {
            let row = PodVolumes { present, error };
            if tools.rows.get(uid).is_none_or(|old| *old != row) {
                tools.rows.post(uid.clone(), Arc::new(row));
            }
        }
        None => {
            tools.rows.remove(uid);
        }
    }
}

/// Brings the whole board in line with the root directory.
pub(crate) async fn rescan(tools: Tools, effects: Effects) {
    effects.hit("rescan").await;
    let listing = {
        let tools = tools.clone();
        effects.blocking(Class::HostFiles, move || pod_uids(&tools)).await
    };
    let uids = match listing {
        Ok(uids) => uids,
        Err(e) => {
            tracing::warn!(error = %e, "pod directories cannot be listed");
            return;
        }
    };
    let shown: Vec<PodUid> = tools.rows.snapshot().into_keys().collect();
    for uid in uids.into_iter().chain(shown) {
        // In turn with other work on the pod: a row never tells of the past.
        let (tools, serial, of) = (tools.clone(), tools.deps.serial.clone(), uid.clone());
        let update = move || {
            let error = tools.rows.get(&of).and_then(|row| row.error.clone());
            post(&tools, &of, error);
        };
        serial.run(&uid, &effects, Class::HostFiles, update).await;
    }
}

fn pod_uids(tools: &Tools) -> Result<Vec<PodUid>, String> {
    match tools.deps.fs.list_dir(&pods(&tools.config.root_dir)) {
        Ok(entries) => Ok(entries.into_iter().filter(|e| e.is_dir).map(|e| PodUid::from(e.name)).collect()),
        Err(e) if e.is_not_found() => Ok(Vec::new()),
        Err(e) => Err(actor::chain(&e)),
    }
}
