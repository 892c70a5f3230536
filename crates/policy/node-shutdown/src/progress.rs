//! How far a shutdown is.

use std::time::Duration;

use crate::plan::Group;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Its pods are stopped; wait for them, so long at most.
    Wait(Duration),
    /// The group has come to its end; `in_time`: with all of its pods.
    Next {
        /// None of its pods is left.
        in_time: bool,
    },
    /// All groups are through: the machine may go down.
    Done,
}

/// What becomes of a shutdown whose group `at` has had its turn for `since`, and has `active` pods left. A group without pods is
/// passed over at once.
#[must_use]
pub fn next_step(groups: &[Group], at: usize, active: usize, since: Duration) -> Step {
    let Some(group) = groups.get(at) else { return Step::Done };
    if active == 0 {
        return Step::Next { in_time: true };
    }
    match Duration::from_secs(group.period_s).checked_sub(since) {
        Some(left) if !left.is_zero() => Step::Wait(left),
        _ => Step::Next { in_time: false },
    }
}
