//! Trouble of a scenario, in the words of the fakes.

use std::path::Path;
use std::time::Duration;

use fakes::api::{Matching, Trouble};
use fakes::files::{Errno, FileTrouble};
use fakes::runtime::{Code, EventTrouble, Fault, FaultKind};
use ports::api::ApiError;
use sim::{DISK, POD_URL, SimNode};

use crate::step::{ApiTrouble, DiskTrouble, RuntimeTrouble};

const SLOW_API: Duration = Duration::from_secs(2);
const SLOW_CALL: Duration = Duration::from_secs(3);
const LATE_CALL: Duration = Duration::from_secs(7);

/// A probe does not last as long as a name is looked up.
const NO_NAME: Duration = Duration::from_secs(60);

fn status(code: u16) -> ApiError {
    let reason = match code {
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        _ => "InternalError",
    };
    ApiError::status(code, reason, format!("answered with {code}, by order"))
}

fn reset() -> ApiError {
    ApiError::Unreachable { message: "connection reset by peer".to_owned() }
}

pub(super) fn api(node: &SimNode, trouble: &ApiTrouble) {
    let api = node.api();
    let some = |trouble, times| api.trouble(Matching::any(), trouble, times);
    match *trouble {
        ApiTrouble::Unplug => api.unplug(),
        ApiTrouble::Answer { status: code, times } => some(Trouble::Fail(status(code)), times),
        ApiTrouble::Lose { times } => {
            for verb in ["POST", "PUT", "PATCH", "DELETE"] {
                api.trouble(Matching::of(verb, ""), Trouble::DoneButLost(reset()), times);
            }
        }
        ApiTrouble::Hang { times } => some(Trouble::Hang, times),
        ApiTrouble::Slow { times } => some(Trouble::Slow(SLOW_API), times),
        ApiTrouble::Compact => {
            api.store(fakes::api::Store::compact);
            api.cut_follows(status(410));
        }
        ApiTrouble::Cut => api.cut_follows(reset()),
        ApiTrouble::Stale => api.hold_follows(),
        // Whoever has the backup does these.
        ApiTrouble::Backup | ApiTrouble::Restore => {}
    }
}

pub(super) fn runtime(node: &SimNode, trouble: &RuntimeTrouble) {
    let runtime = &node.world.runtime;
    let some = |rpc: &str, kind, times| runtime.inject(Fault::new(rpc, kind).times(times));
    let text = || "by order".to_owned();
    match trouble {
        RuntimeTrouble::Error { rpc, times } => some(rpc, FaultKind::Error(Code::Unknown, text()), *times),
        RuntimeTrouble::Lost { rpc, times } => some(rpc, FaultKind::ErrorAfter(Code::Unavailable, text()), *times),
        RuntimeTrouble::Hang { rpc, times } => some(rpc, FaultKind::Hang, *times),
        RuntimeTrouble::Slow { rpc, times } => some(rpc, FaultKind::Delay(SLOW_CALL), *times),
        RuntimeTrouble::Late { rpc, times } => some(rpc, FaultKind::Late(LATE_CALL), *times),
        RuntimeTrouble::Disconnect => runtime.disconnect(),
        RuntimeTrouble::Down => runtime.down(),
        // Whoever knows the containers, and what the daemon knows of them, does these.
        RuntimeTrouble::Forget | RuntimeTrouble::Partial { .. } => {}
        RuntimeTrouble::Mute => runtime.trouble_events(EventTrouble::Lost),
        RuntimeTrouble::Twice => runtime.trouble_events(EventTrouble::Twice),
        RuntimeTrouble::Tardy => runtime.trouble_events(EventTrouble::Late(SLOW_CALL)),
        RuntimeTrouble::Reorder => runtime.trouble_events(EventTrouble::Reordered(SLOW_CALL)),
        RuntimeTrouble::NoNetwork => runtime.set_network_ready(false),
    }
}

fn room(node: &SimNode, percent: u64) {
    node.world.host.change(|machine| {
        if let Some(disk) = &mut machine.disk {
            disk.available_bytes = disk.total_bytes / 100 * percent;
        }
    });
}

/// Names are looked up, or not.
pub(super) fn names(node: &SimNode, hang: bool) {
    node.world.host.change(|machine| machine.names_hang = hang);
    node.world.net.set_takes(if hang { NO_NAME } else { Duration::ZERO });
    if hang {
        node.world.web.hang(POD_URL);
        node.api().lasting_trouble(Matching::any(), Trouble::Hang);
    } else {
        // A source that has never been read holds up all that goes.
        node.world.web.put(POD_URL, "");
    }
}

/// Manifests are written by somebody else, who has space.
pub(super) fn disk(node: &SimNode, trouble: DiskTrouble) {
    let what = match trouble {
        DiskTrouble::Short => return room(node, 5),
        DiskTrouble::Full => FileTrouble::FailWrites(Errno::NoSpc),
        DiskTrouble::Broken => FileTrouble::Fail(Errno::Io),
    };
    node.world.journal.set_broken(true);
    node.world.files.trouble(&Path::new(DISK).join("root"), what);
}

pub(super) fn calm(node: &SimNode) {
    node.kernel.faults().clear();
    node.api().calm();
    let runtime = &node.world.runtime;
    runtime.clear_faults();
    runtime.up();
    runtime.mute_events(false);
    runtime.set_network_ready(true);
    node.world.journal.set_broken(false);
    node.world.files.calm();
    room(node, 90);
    names(node, false);
}
