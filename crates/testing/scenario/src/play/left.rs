//! What should not be left once a node is at rest, where checkers do not see it: boards, mailboxes, asks, journal, folders.

use std::collections::BTreeSet;
use std::time::Duration;

use contract::pod_manager::DesiredPod;
use contract::pod_worker::WorkerState;
use contract::status::StatusEntry;
use model::pod;
use ports::host::HostFs;
use ports::journal::Journal;
use sim::{DISK, NODE_NAME};

use super::apply::Stage;
use super::claims;

/// How long after its deadline an ask may be open: then its asker has to be polled.
const PATIENCE: Duration = Duration::from_secs(1);
/// Messages that may wait at an actor while nothing happens: those of one moment.
const MAILBOX: usize = 32;

/// Asks that nobody has answered in time since the daemon began: of roles with a seat all, else those that were never begun with.
pub(super) fn expired(stage: &Stage) -> u64 {
    let asked = stage.node.wiring().seats().flat_map(|seat| seat.fared().into_values()).map(|fared| fared.expired);
    let actors = stage.node.kernel.directory().actors();
    asked.sum::<u64>() + actors.iter().map(|a| a.expired_asks).sum::<u64>()
}

pub(super) fn of(stage: &Stage) -> Vec<String> {
    let (node, mut left) = (&stage.node, Vec::new());
    let wanted: Vec<String> = stage.observer.history().wanted().keys().map(|pod| (*pod).to_owned()).collect();
    let is_wanted = |name: &str| wanted.iter().any(|w| w == name);
    let workers = node.wiring().board::<WorkerState>().snapshot();
    let desired = node.wiring().board::<DesiredPod>().snapshot();
    for (uid, row) in &workers {
        // The worker of a pod that was refused and ran before knows only its UID.
        let known = row.pod.as_deref().or_else(|| desired.get(uid).map(|row| &*row.pod));
        let name = known.map_or("", |p| pod::name(p));
        if !is_wanted(name) {
            left.push(format!("a worker of {name} ({uid}) in phase {:?}", row.phase));
        }
    }
    for row in node.wiring().board::<StatusEntry>().snapshot().values().filter(|row| !is_wanted(&row.name)) {
        left.push(format!("a status of {}", row.name));
    }
    for s in node.world.runtime.sandboxes().iter().filter(|s| s.ready && !is_wanted(s.pod())) {
        left.push(format!("a sandbox of {}", s.pod()));
    }
    for a in node.kernel.directory().actors().iter().filter(|a| a.mailbox_depth > MAILBOX) {
        left.push(format!("{} messages at {}", a.mailbox_depth, a.name));
    }
    for (message, late) in node.wiring().seats().flat_map(|seat| seat.overdue()) {
        if late > PATIENCE {
            left.push(format!(
                "{message} is asked for by somebody who does not look, {} s after the deadline",
                late.as_secs()
            ));
        }
    }
    let lines = node.world.journal.keys("worker/").unwrap_or_default();
    // What a refused pod left when it ran before goes with it.
    let known: BTreeSet<&str> = workers.keys().chain(desired.keys()).map(|uid| uid.as_str()).collect();
    for key in lines.iter().filter(|key| !known.contains(key.trim_start_matches("worker/"))) {
        left.push(format!("a line {key} in the journal"));
    }
    left.extend(claims::left(node, |pod| is_wanted(&format!("{pod}-{NODE_NAME}"))));
    let folders = node.world.files.list_dir(&std::path::Path::new(DISK).join("root/pods")).unwrap_or_default();
    for folder in folders.iter().filter(|f| !known.contains(f.name.as_str())) {
        left.push(format!("a folder of the pod {}", folder.name));
    }
    left
}
