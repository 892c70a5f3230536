//! Actors, off the kernel's directory. Pod workers share one row: a row per pod would be a series per pod, for ever.

use std::collections::BTreeMap;

use actor::{ActorInfo, ActorPhase, Kernel, Totals};
use metrics::Kind::{Counter, Gauge};

use crate::families::{Families, Row};

const WHO: &[&str] = &["actor", "group"];

pub(crate) const TABLE: &[Row] = &[
    ("bosun_actors", Gauge, "Actors that live now, by what they are at.", &["actor", "group", "state"]),
    (
        "bosun_actor_state",
        Gauge,
        "State of the actor: 0 running, 1 starting, 2 restarting, 3 stopping; the worst of them.",
        WHO,
    ),
    ("bosun_actor_restarts_total", Counter, "Crashes of the actor; each was followed by a rebuild.", WHO),
    ("bosun_actor_mailbox_depth", Gauge, "Messages queued now; of several actors the sum.", WHO),
    ("bosun_actor_mailbox_capacity", Gauge, "Messages that may be queued; of several actors the sum.", WHO),
    ("bosun_actor_turns_total", Counter, "Turns taken: messages, timers, effects that ended.", WHO),
    ("bosun_actor_turn_seconds_total", Counter, "Time in turns.", WHO),
    ("bosun_actor_turn_seconds_max", Gauge, "Longest turn of those who live.", WHO),
    ("bosun_actor_wait_seconds_total", Counter, "Time that messages were queued.", WHO),
    ("bosun_actor_expired_asks_total", Counter, "Questions not begun, for their deadline had passed.", WHO),
    ("bosun_actor_overloaded_asks_total", Counter, "Questions that found no room until their deadline.", WHO),
    ("bosun_actor_rejected_tells_total", Counter, "Messages refused for want of room.", WHO),
    ("bosun_actor_detached_panics_total", Counter, "Panics in work that outlives its actor.", WHO),
    (
        "bosun_actor_dead_letters_total",
        Counter,
        "Messages and work not done because they crashed the actor twice.",
        WHO,
    ),
];

/// What is told of a row.
#[derive(Debug, Default)]
struct Line {
    states: BTreeMap<&'static str, u32>,
    worst: u8,
    capacity: usize,
    depth: usize,
    turn_max_ns: u64,
    counts: Totals,
}

pub(crate) fn fill(families: &mut Families, kernel: &Kernel) {
    for ((actor, group), line) in &lines(kernel) {
        let who: &[&str] = &[actor, group];
        let c = &line.counts;
        for (state, n) in &line.states {
            families.put("bosun_actors", &[actor, group, state], f64::from(*n));
        }
        families.put("bosun_actor_state", who, f64::from(line.worst));
        families.put("bosun_actor_restarts_total", who, number(c.restarts));
        families.put("bosun_actor_mailbox_depth", who, number(line.depth as u64));
        families.put("bosun_actor_mailbox_capacity", who, number(line.capacity as u64));
        families.put("bosun_actor_turns_total", who, number(c.turns));
        families.put("bosun_actor_turn_seconds_total", who, seconds(c.turn_sum_ns));
        families.put("bosun_actor_turn_seconds_max", who, seconds(line.turn_max_ns));
        families.put("bosun_actor_wait_seconds_total", who, seconds(c.wait_sum_ns));
        families.put("bosun_actor_expired_asks_total", who, number(c.expired_asks));
        families.put("bosun_actor_overloaded_asks_total", who, number(c.overloaded_asks));
        families.put("bosun_actor_rejected_tells_total", who, number(c.rejected_tells));
        families.put("bosun_actor_detached_panics_total", who, number(c.detached_panics));
        families.put("bosun_actor_dead_letters_total", who, number(c.set_aside));
    }
}

/// Rows by actor and group. `kind/instance` counts as `kind`; there the counters are the group's, so that they do not fall
/// when an instance ends.
fn lines(kernel: &Kernel) -> BTreeMap<(String, String), Line> {
    let totals = kernel.directory().totals();
    let mut lines: BTreeMap<(String, String), Line> = BTreeMap::new();
    for info in kernel.directory().actors() {
        match info.name.split_once('/') {
            Some((kind, _)) => {
                let line = lines.entry((kind.to_owned(), info.group.clone())).or_default();
                line.count(&info);
                line.counts = totals.get(&info.group).cloned().unwrap_or_default();
            }
            None => {
                let line = lines.entry((info.name.clone(), info.group.clone())).or_default();
                line.count(&info);
                line.add(&info);
            }
        }
    }
    lines
}

impl Line {
    fn count(&mut self, info: &ActorInfo) {
        let (state, rank) = match info.state {
            ActorPhase::Running => ("running", 0),
            ActorPhase::Starting => ("starting", 1),
            ActorPhase::Restarting => ("restarting", 2),
            ActorPhase::Stopping => ("stopping", 3),
            ActorPhase::Gone => return,
        };
        *self.states.entry(state).or_default() += 1;
        self.worst = self.worst.max(rank);
        self.capacity += info.mailbox_capacity;
        self.depth += info.mailbox_depth;
        self.turn_max_ns = self.turn_max_ns.max(info.turn_max_ns);
    }

    fn add(&mut self, info: &ActorInfo) {
        let c = &mut self.counts;
        c.restarts += info.restarts;
        c.turns += info.turns;
        c.turn_sum_ns += info.turn_sum_ns;
        c.wait_sum_ns += info.wait_sum_ns;
        c.expired_asks += info.expired_asks;
        c.overloaded_asks += info.overloaded_asks;
        c.rejected_tells += info.rejected_tells;
        c.detached_panics += info.detached_panics;
        c.set_aside += info.set_aside;
    }
}

#[allow(clippy::cast_precision_loss, reason = "numbers of metrics are doubles")]
pub(super) fn number(n: u64) -> f64 {
    n as f64
}

#[allow(clippy::cast_precision_loss, reason = "numbers of metrics are doubles")]
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
