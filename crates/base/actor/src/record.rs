//! What is known of one actor, readable from any thread.

use crate::control::{Control, locked};
use crate::crash::Crash;
use crate::info::{ActorInfo, ActorPhase, TURN_BUCKETS_US};
use crate::passages::Passages;
use crate::poison::Poison;
use crate::type_name::short;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore};

/// A turn this long is logged: it held up all actors of its thread.
const SLOW_TURN: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) generation: AtomicU64,
    pub(crate) restarts: AtomicU64,
    pub(crate) turns: AtomicU64,
    pub(crate) turn_sum_ns: AtomicU64,
    pub(crate) turn_max_ns: AtomicU64,
    pub(crate) turn_buckets: [AtomicU64; TURN_BUCKETS_US.len() + 1],
    pub(crate) wait_sum_ns: AtomicU64,
    pub(crate) wait_max_ns: AtomicU64,
    pub(crate) expired_asks: AtomicU64,
    pub(crate) overloaded_asks: AtomicU64,
    pub(crate) rejected_tells: AtomicU64,
    pub(crate) detached_panics: AtomicU64,
    pub(crate) set_aside: AtomicU64,
    /// Effects of `Ctx::run` that are not over.
    pub(crate) under_way: AtomicU64,
}

/// Counts an effect for as long as it lives.
pub(crate) struct UnderWay(Arc<Record>);

impl UnderWay {
    pub(crate) fn new(record: &Arc<Record>) -> Self {
        record.count.under_way.fetch_add(1, Relaxed);
        UnderWay(record.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.count.under_way.fetch_sub(1, Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) id: u64,
    pub(crate) name: Arc<str>,
    pub(crate) group: Arc<str>,
    pub(crate) capacity: usize,
    /// One permit per free place of the mailbox. Closed = the actor takes no more messages.
    pub(crate) room: Semaphore,
    pub(crate) control: Control,
    pub(crate) count: Counters,
    phase: AtomicU8,
    /// Watchdog tick at which the running poll began, plus one; 0 between polls.
    pub(crate) polling: AtomicU64,
    /// Type name of the latest message, for the watchdog and the directory.
    pub(crate) message: Mutex<&'static str>,
    pub(crate) last_crash: Mutex<Option<Arc<Crash>>>,
    pub(crate) poison: Poison,
    /// Fault points that were passed; made when the first is.
    pub(crate) passages: OnceLock<Arc<Passages>>,
    /// Whether turns and waits are measured: in simulated time they take none.
    is_timed: bool,
    gone: Notify,
}

impl Record {
    pub(crate) fn new(id: u64, name: Arc<str>, group: Arc<str>, capacity: usize, is_timed: bool) -> Self {
        Record {
            id,
            name,
            group,
            capacity,
            room: Semaphore::new(capacity),
            control: Control::default(),
            count: Counters::default(),
            phase: AtomicU8::new(ActorPhase::Starting as u8),
            polling: AtomicU64::new(0),
            message: Mutex::new(""),
            last_crash: Mutex::new(None),
            poison: Poison::new(),
            passages: OnceLock::new(),
            is_timed,
            gone: Notify::new(),
        }
    }

    /// Messages in the mailbox, including places reserved by senders.
    pub(crate) fn depth(&self) -> usize {
        self.capacity.saturating_sub(self.room.available_permits())
    }

    /// Takes no more messages; ends when the queued ones are handled.
    pub(crate) fn close(&self) {
        self.room.close();
        self.control.wake();
    }

    pub(crate) fn closing(&self) -> bool {
        self.room.is_closed()
    }

    pub(crate) fn phase(&self) -> ActorPhase {
        ActorPhase::from_u8(self.phase.load(Relaxed))
    }

    pub(crate) fn set_phase(&self, phase: ActorPhase) {
        self.phase.store(phase as u8, Relaxed);
        if phase == ActorPhase::Gone {
            self.room.close();
            self.gone.notify_waiters();
        }
    }

    pub(crate) async fn until_gone(&self) {
        loop {
            let notified = self.gone.notified();
            if self.phase() == ActorPhase::Gone {
                return;
            }
            notified.await;
        }
    }

    /// Where a turn or a wait begins, if they are measured.
    pub(crate) fn begin(&self) -> Option<Instant> {
        self.is_timed.then(Instant::now)
    }

    /// Accounts a turn of `what` (a type name or a label) that ends now.
    pub(crate) fn note_turn(&self, what: &str, began: Option<Instant>) {
        let took = began.map_or(Duration::ZERO, |began| began.elapsed());
        if took >= SLOW_TURN {
            tracing::warn!(target: "actor", turn = short(what), ?took, "slow turn: neighbours waited");
        }
        let ns = nanos(took);
        self.count.turns.fetch_add(1, Relaxed);
        self.count.turn_sum_ns.fetch_add(ns, Relaxed);
        self.count.turn_max_ns.fetch_max(ns, Relaxed);
        let bucket = TURN_BUCKETS_US.iter().position(|us| ns <= us * 1_000).unwrap_or(TURN_BUCKETS_US.len());
        self.count.turn_buckets[bucket].fetch_add(1, Relaxed);
    }

    /// Accounts a wait in the mailbox.
    pub(crate) fn note_wait(&self, from: Option<Instant>, until: Option<Instant>) {
        let (Some(from), Some(until)) = (from, until) else { return };
        let ns = nanos(until.duration_since(from));
        self.count.wait_sum_ns.fetch_add(ns, Relaxed);
        self.count.wait_max_ns.fetch_max(ns, Relaxed);
    }

    pub(crate) fn info(&self) -> ActorInfo {
        let c = &self.count;
        let crash = locked(&self.last_crash).clone();
        ActorInfo {
            name: self.name.to_string(),
            group: self.group.to_string(),
            state: self.phase(),
            generation: c.generation.load(Relaxed),
            restarts: c.restarts.load(Relaxed),
            mailbox_depth: self.depth(),
            mailbox_capacity: self.capacity,
            turns: c.turns.load(Relaxed),
            turn_sum_ns: c.turn_sum_ns.load(Relaxed),
            turn_max_ns: c.turn_max_ns.load(Relaxed),
            turn_buckets: c.turn_buckets.each_ref().map(|b| b.load(Relaxed)).to_vec(),
            wait_sum_ns: c.wait_sum_ns.load(Relaxed),
            wait_max_ns: c.wait_max_ns.load(Relaxed),
            expired_asks: c.expired_asks.load(Relaxed),
            overloaded_asks: c.overloaded_asks.load(Relaxed),
            rejected_tells: c.rejected_tells.load(Relaxed),
            detached_panics: c.detached_panics.load(Relaxed),
            set_aside: c.set_aside.load(Relaxed),
            aside: self.poison.list(&self.name, short),
            overdue_calls: Vec::new(),
            last_message: short(*locked(&self.message)),
            last_cause: crash.map(|c| c.to_string()),
        }
    }
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}
