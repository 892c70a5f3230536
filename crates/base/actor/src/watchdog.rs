//! A thread that finds arbiters blocked inside of a turn, which no timer of theirs could.

use crate::blocking::Blocking;
use crate::control::locked;
use crate::directory::Directory;
use crate::record::Record;
use crate::type_name::short;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// Rounds per limit: a turn is found blocked after `limit` to `limit * 9 / 8`.
const ROUNDS: u32 = 8;

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

/// What the watchdog looks at, and where it says what it saw.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) directory: Directory,
    pub(crate) blocking: Blocking,
    /// Rounds so far.
    pub(crate) tick: AtomicU64,
    /// A turn that has held its thread for half of the limit.
    pub(crate) blocked: Mutex<Option<Blocked>>,
}

impl Watched {
    pub(crate) fn new(blocking: Blocking) -> Self {
        Watched {
            directory: Directory::new(blocking.clone()),
            blocking,
            tick: AtomicU64::new(0),
            blocked: Mutex::default(),
        }
    }
}

/// Runs until the kernel is gone.
pub(crate) fn start(config: Watchdog, watched: Weak<Watched>) {
    let round = config.limit / ROUNDS;
    let spawned = std::thread::Builder::new().name("watchdog".into()).spawn(move || {
        let mut reported = Vec::new();
        loop {
            std::thread::park_timeout(round);
            let Some(watched) = watched.upgrade() else { return };
            check(&config, &watched, &mut reported);
        }
    });
    if let Err(err) = spawned {
        tracing::error!(target: "actor", %err, "no watchdog: its thread did not start");
    }
}

/// One round. `reported`: (actor, tick at which its poll began) of the turns known to be blocked.
fn check(config: &Watchdog, watched: &Watched, reported: &mut Vec<(u64, u64)>) {
    let tick = watched.tick.fetch_add(1, Relaxed) + 1;
    let mut blocked = Vec::new();
    let mut fresh = Vec::new();
    let mut slow = None;
    watched.directory.each(|record| {
        let began = record.polling.load(Relaxed);
        let ticks = if began == 0 { 0 } else { tick.saturating_sub(began - 1) };
        if ticks > u64::from(ROUNDS / 2) && slow.is_none() {
            slow = Some(blocked_turn(config, record, ticks));
        }
        if ticks > u64::from(ROUNDS) {
            blocked.push((record.id, began));
            if !reported.contains(&(record.id, began)) {
                fresh.push(blocked_turn(config, record, ticks));
            }
        }
    });
    watched.blocking.log_overdue();
    *locked(&watched.blocked) = slow;
    for turn in fresh {
        // First: whatever holds the turn may hold the log too.
        (config.on_blocked)(&turn);
        tracing::error!(target: "actor", actor = turn.actor, message = turn.message, since = ?turn.since,
            "turn blocks its thread");
    }
    *reported = blocked;
}

fn blocked_turn(config: &Watchdog, record: &Record, ticks: u64) -> Blocked {
    let since = config.limit / ROUNDS * u32::try_from(ticks).unwrap_or(u32::MAX);
    Blocked { actor: record.name.to_string(), message: short(*locked(&record.message)), since }
}
