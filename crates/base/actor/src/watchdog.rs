//! A thread that finds arbiters blocked inside of a turn, which no timer of theirs could.

use crate::control::locked;
use crate::envelope::short;
use crate::kernel::Inner;
use crate::record::Record;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Looks per limit: a turn is found blocked after `limit` to `limit * 9 / 8`.
const LOOKS: u32 = 8;

/// A turn that holds its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// Whose turn.
    pub actor: String,
    /// Latest message it took.
    pub message: String,
    /// For how long, at least.
    pub since: Duration,
}

/// Patience with a turn, and what to do when it is over (a daemon exits, for its service manager to start it anew).
#[derive(Clone)]
pub struct Watchdog {
    /// Longest turn that is borne.
    pub limit: Duration,
    /// Called once per blocked turn, on the watchdog's thread.
    pub on_blocked: Arc<dyn Fn(&Blocked) + Send + Sync>,
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Runs until the kernel is gone.
pub(crate) fn start(config: Watchdog, kernel: Weak<Inner>) {
    let round = config.limit / LOOKS;
    let spawned = std::thread::Builder::new().name("watchdog".into()).spawn(move || {
        let mut reported = Vec::new();
        loop {
            std::thread::park_timeout(round);
            let Some(kernel) = kernel.upgrade() else { return };
            look(&config, &kernel, &mut reported);
        }
    });
    if let Err(err) = spawned {
        tracing::error!(target: "actor", %err, "no watchdog: its thread did not start");
    }
}

/// One round. `reported`: (actor, tick at which its poll began) of the turns known to be blocked.
fn look(config: &Watchdog, kernel: &Inner, reported: &mut Vec<(u64, u64)>) {
    let tick = kernel.tick.fetch_add(1, Relaxed) + 1;
    let mut blocked = Vec::new();
    let mut fresh = Vec::new();
    let mut slow = false;
    kernel.directory.each(|record| {
        let began = record.polling.load(Relaxed);
        let ticks = if began == 0 { 0 } else { tick.saturating_sub(began - 1) };
        slow |= ticks > u64::from(LOOKS / 2);
        if ticks > u64::from(LOOKS) {
            blocked.push((record.id, began));
            if !reported.contains(&(record.id, began)) {
                fresh.push(blocked_turn(config, record, ticks));
            }
        }
    });
    kernel.blocking.tell_overdue();
    kernel.blocked.store(slow, Relaxed);
    for turn in fresh {
        // First: whatever holds the turn may hold the log too.
        (config.on_blocked)(&turn);
        tracing::error!(target: "actor", actor = turn.actor, message = turn.message, since = ?turn.since,
            "turn blocks its thread");
    }
    *reported = blocked;
}

fn blocked_turn(config: &Watchdog, record: &Record, ticks: u64) -> Blocked {
    let since = config.limit / LOOKS * u32::try_from(ticks).unwrap_or(u32::MAX);
    Blocked { actor: record.name.to_string(), message: short(*locked(&record.message)), since }
}
