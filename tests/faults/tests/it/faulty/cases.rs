//! What is struck: points of actors, each with each action, at their first passage and at later ones.

use std::collections::{BTreeMap, BTreeSet};

use actor::Kernel;
use fakes::runtime::Features;

/// Each with the passage of a point that it strikes, where an undisturbed round has so many; else the first.
pub(super) const ACTIONS: [(&str, u32); 3] = [("panic", 1), ("kill", 2), (STALL, 1)];
/// Long enough to outlast the deadlines of book-keeping asks and the patience with a stuck actor.
pub(super) const STALL: &str = "stall(40s)";
/// Further passages that a panic strikes too with `FAULT_DEPTH=all`, where an undisturbed round has so many.
const LATER: [u32; 4] = [2, 3, 4, 5];
/// An actor with fewer points is struck on one kind of runtime: a node costs more than its cases.
const FEW: usize = 16;

/// Whether an actor of which so many points are known is struck on no further kind of runtime.
pub(super) fn is_enough(points: usize) -> bool {
    (1..FEW).contains(&points)
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Case {
    pub(super) actor: String,
    pub(super) point: String,
    pub(super) action: &'static str,
    /// Which passage of the point.
    pub(super) nth: u32,
}

impl Case {
    pub(super) fn rule(&self) -> String {
        format!("{}: {}@={}#{}", self.actor, self.action, self.point, self.nth)
    }
}

/// How often points were passed, by actor (workers count as one) and point.
#[derive(Clone, Debug, Default)]
pub(super) struct Passages(pub(super) BTreeMap<String, BTreeMap<String, u64>>);

impl Passages {
    /// Up to now.
    pub(super) fn of(kernel: &Kernel) -> Self {
        let mut out = Self::default();
        for (actor, point, count) in kernel.faults().passages() {
            let actor = actor.split('/').next().unwrap_or_default().to_owned();
            *out.0.entry(actor).or_default().entry(point).or_default() += count;
        }
        out
    }

    pub(super) fn count(&self, actor: &str, point: &str) -> u64 {
        self.0.get(actor).and_then(|points| points.get(point)).copied().unwrap_or_default()
    }

    /// Those after `before`.
    pub(super) fn since(mut self, before: &Self) -> Self {
        for (actor, points) in &mut self.0 {
            points.iter_mut().for_each(|(point, count)| *count -= before.count(actor, point));
        }
        self
    }

    /// Of two rounds: what each of them has.
    pub(super) fn join(&mut self, other: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        for (actor, points) in &mut self.0 {
            points.iter_mut().for_each(|(point, count)| *count = other.count(actor, point).min(*count));
        }
    }
}

/// The runtimes that the cases are shared out to, by how they tell of changes, and the cases that each gets. The last one gets
/// what is left.
pub(super) type Kind = (&'static str, fn() -> Features, fn(&Case) -> bool);
pub(super) const KINDS: [Kind; 3] = [
    ("CRI events", Features::containerd_2, |c| c.action == "kill" || [2, 3, 5].contains(&c.nth)),
    ("no events", Features::without_events, |c| c.action == STALL || c.nth == 4),
    ("containerd's events", Features::containerd_1_6, |c| c.action == "panic" && c.nth == 1),
];

/// The kinds in an order of the actor's own, so that those which are struck on the first alone are not all struck on the same. The
/// one that speaks with the runtime passes points on the last kind that it passes on no other.
pub(super) fn kinds(actor: &str) -> [Kind; 3] {
    let mut kinds = KINDS;
    if actor != <contract::RuntimeClient as contract::Role>::DECLARATION.actor {
        kinds.rotate_left(actor.len() % KINDS.len());
    }
    kinds
}

/// The cases of one actor: `points` are those that it has passed so far, and how often in each undisturbed round.
pub(super) fn cases(actor: &str, points: &BTreeSet<String>, passages: &Passages) -> Vec<Case> {
    let case = |p: &String, action, nth| Case { actor: actor.to_owned(), point: p.clone(), action, nth };
    let reached = |p: &String, nth: u32| u64::from(nth) <= passages.count(actor, p);
    let deep = std::env::var("FAULT_DEPTH").is_ok_and(|depth| depth == "all");
    let of_point = |p: &String| {
        let actions = ACTIONS.map(|(action, nth)| case(p, action, if reached(p, nth) { nth } else { 1 }));
        let later = LATER.into_iter().filter(|n| deep && reached(p, *n));
        actions.into_iter().chain(later.map(|nth| case(p, "panic", nth))).collect::<Vec<_>>()
    };
    // To replay single cases: the text of a rule, or a part of it.
    let only = std::env::var("FAULT").unwrap_or_default();
    points.iter().flat_map(of_point).filter(|c| c.rule().contains(&only)).collect()
}
