//! Who lives here, and how they fare: the source of `bosun get actors` and of the metrics.

use crate::blocking::Blocking;
use crate::control::{Order, locked};
use crate::info::{ActorInfo, TURN_BUCKETS_US};
use crate::record::Record;
use dashmap::DashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

/// Counters of a group, its former members included: they never fall.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Members living now; a gauge.
    pub actors: u64,
    /// Messages queued now; a gauge.
    pub mailbox_depth: u64,
    /// Crashes.
    pub restarts: u64,
    /// Turns taken.
    pub turns: u64,
    /// Time in turns, in nanoseconds.
    pub turn_sum_ns: u64,
    /// Turns by length, see [`TURN_BUCKETS_US`].
    pub turn_buckets: [u64; TURN_BUCKETS_US.len() + 1],
    /// Time that messages spent queued, in nanoseconds.
    pub wait_sum_ns: u64,
    /// Asks not started for their deadline had passed.
    pub expired_asks: u64,
    /// Asks that found no room.
    pub overloaded_asks: u64,
    /// Tells refused.
    pub rejected_tells: u64,
    /// Panics in detached answers.
    pub detached_panics: u64,
    /// Messages and pieces of work that were not done because they are set aside.
    pub set_aside: u64,
}

impl Totals {
    fn add(&mut self, record: &Record) {
        let c = &record.count;
        self.restarts += c.restarts.load(Relaxed);
        self.turns += c.turns.load(Relaxed);
        self.turn_sum_ns += c.turn_sum_ns.load(Relaxed);
        for (sum, bucket) in self.turn_buckets.iter_mut().zip(&c.turn_buckets) {
            *sum += bucket.load(Relaxed);
        }
        self.wait_sum_ns += c.wait_sum_ns.load(Relaxed);
        self.expired_asks += c.expired_asks.load(Relaxed);
        self.overloaded_asks += c.overloaded_asks.load(Relaxed);
        self.rejected_tells += c.rejected_tells.load(Relaxed);
        self.detached_panics += c.detached_panics.load(Relaxed);
        self.set_aside += c.set_aside.load(Relaxed);
    }
}

/// All living actors of a kernel.
#[derive(Debug)]
pub struct Directory {
    records: DashMap<u64, Arc<Record>>,
    departed: Mutex<BTreeMap<String, Totals>>,
    blocking: Blocking,
}

impl Directory {
    pub(crate) fn new(blocking: Blocking) -> Self {
        Directory { records: DashMap::default(), departed: Mutex::default(), blocking }
    }

    pub(crate) fn add(&self, record: Arc<Record>) {
        self.records.insert(record.id, record);
    }

    pub(crate) fn remove(&self, id: u64) {
        // The lock is held over both steps, so that no reader of totals misses the actor or counts it twice.
        let mut departed = locked(&self.departed);
        if let Some((_, record)) = self.records.remove(&id) {
            departed.entry(record.group.to_string()).or_default().add(&record);
        }
    }

    /// Counters by group, for metrics.
    pub fn totals(&self) -> BTreeMap<String, Totals> {
        let departed = locked(&self.departed);
        let mut totals = departed.clone();
        self.each(|record| {
            let group = totals.entry(record.group.to_string()).or_default();
            group.add(record);
            group.actors += 1;
            group.mailbox_depth += record.depth() as u64;
        });
        totals
    }

    pub(crate) fn each(&self, mut f: impl FnMut(&Record)) {
        for entry in &self.records {
            f(entry.value());
        }
    }

    fn sorted(&self) -> Vec<Arc<Record>> {
        let mut all: Vec<_> = self.records.iter().map(|e| e.value().clone()).collect();
        all.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        all
    }

    /// All living actors, by name.
    pub fn actors(&self) -> Vec<ActorInfo> {
        self.sorted().iter().map(|r| self.info(r)).collect()
    }

    /// The living actor of that name; the youngest when there are several.
    pub fn get(&self, name: &str) -> Option<ActorInfo> {
        self.find(name).map(|r| self.info(&r))
    }

    /// Short backtrace of the last crash of that actor; resolved on demand, for symbols are slow to look up.
    pub fn backtrace(&self, name: &str) -> Option<String> {
        let crash = locked(&self.find(name)?.last_crash).clone()?;
        crash.short_backtrace()
    }

    /// Crashes the actor of that name, as an injected panic. False when there is none.
    pub fn kill(&self, name: &str) -> bool {
        let found = self.find(name);
        if let Some(record) = &found {
            record.control.give(Order::Kill("killed by request".into()));
        }
        found.is_some()
    }

    fn info(&self, record: &Record) -> ActorInfo {
        ActorInfo { overdue_calls: self.blocking.overdue(record), ..record.info() }
    }

    fn find(&self, name: &str) -> Option<Arc<Record>> {
        self.sorted().into_iter().rev().find(|r| &*r.name == name)
    }
}
