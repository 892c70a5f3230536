//! What must hold of a node, whatever happens to it: one file for each rule. A checker is a function of what was seen.

use crate::history::History;

mod admitted;
mod backoff;
mod exits;
mod flaps;
mod grace;
mod order;
mod rest;
mod restarts;
mod storm;
mod truth;
mod twice;
mod unwanted;
mod versions;
mod volumes;

pub(crate) use admitted::ALLOCATABLE_M;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// When, in nanoseconds since the node started.
    pub at: i64,
    /// Which rule.
    pub checker: &'static str,
    /// How.
    pub text: String,
}

type Check = fn(&History) -> Vec<(i64, String)>;

/// All checkers, with their names.
pub const CHECKERS: [(&str, Check); 14] = [
    ("twice", twice::check),
    ("unwanted", unwanted::check),
    ("exits", exits::check),
    ("versions", versions::check),
    ("truth", truth::check),
    ("restarts", restarts::check),
    ("backoff", backoff::check),
    ("order", order::check),
    ("grace", grace::check),
    ("admitted", admitted::check),
    ("volumes", volumes::check),
    ("flaps", flaps::check),
    ("storm", storm::check),
    ("rest", rest::check),
];

/// Which rules were broken, the earliest first.
#[must_use]
pub fn check(history: &History) -> Vec<Finding> {
    let mut found = Vec::new();
    for (checker, check) in CHECKERS {
        found.extend(check(history).into_iter().map(|(at, text)| Finding { at, checker, text }));
    }
    found.sort();
    found
}

/// Whether the node is at rest, as far as `history` goes.
pub(crate) fn is_at_rest(history: &History) -> bool {
    rest::open(history).is_empty() && truth::open(history).is_empty()
}

#[cfg(test)]
mod made;
