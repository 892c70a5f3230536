//! What is told of one actor: plain data.

use crate::poison::SetAside;
use serde::Serialize;

/// Upper bounds of the turn-time histogram, in microseconds; one more bucket holds the rest.
pub const TURN_BUCKETS_US: [u64; 6] = [10, 100, 1_000, 10_000, 100_000, 1_000_000];

/// Where an actor is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum ActorPhase {
    /// Spawned, not built yet.
    Starting,
    /// Takes turns.
    Running,
    /// Crashed; waits for its back-off, messages are kept.
    Restarting,
    /// Takes no more messages, works off the queued ones.
    Stopping,
    /// Stopped for good.
    Gone,
}

impl ActorPhase {
    pub(crate) fn from_u8(n: u8) -> Self {
        [Self::Starting, Self::Running, Self::Restarting, Self::Stopping]
            .get(usize::from(n))
            .copied()
            .unwrap_or(Self::Gone)
    }
}

/// Snapshot of one actor; plain data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ActorInfo {
    /// Name given at spawn.
    pub name: String,
    /// Path of its group, `/` between levels.
    pub group: String,
    /// Where it is in its life.
    pub state: ActorPhase,
    /// 0 first, one more per rebuild.
    pub generation: u64,
    /// Crashes of its own.
    pub restarts: u64,
    /// Messages queued now.
    pub mailbox_depth: usize,
    /// Messages that may be queued.
    pub mailbox_capacity: usize,
    /// Turns taken: messages, timers, completed effects.
    pub turns: u64,
    /// Time spent in turns, in nanoseconds of real time.
    pub turn_sum_ns: u64,
    /// Longest turn.
    pub turn_max_ns: u64,
    /// Turns by length; bounds in [`TURN_BUCKETS_US`], last bucket: longer than all.
    pub turn_buckets: Vec<u64>,
    /// Time that messages spent queued, in nanoseconds of real time.
    pub wait_sum_ns: u64,
    /// Longest time in the queue.
    pub wait_max_ns: u64,
    /// Asks whose deadline passed before their turn; not started.
    pub expired_asks: u64,
    /// Asks that found no room until their deadline.
    pub overloaded_asks: u64,
    /// Tells refused for want of room.
    pub rejected_tells: u64,
    /// Panics in detached answers.
    pub detached_panics: u64,
    /// Messages and pieces of work that were not done because they are set aside.
    pub set_aside: u64,
    /// What is set aside now.
    pub aside: Vec<SetAside>,
    /// Blocking calls that have not come back for longer than the kernel's patience, as `user-paths for 75 s`.
    pub overdue_calls: Vec<String>,
    /// Latest message, short type name.
    pub last_message: String,
    /// Why it crashed last: cause, message under work, place.
    pub last_cause: Option<String>,
}
