//! The contract of StatusManager: `contract::status`, and the rules of pod-lifecycle 9.6, 9.9.

mod bed;
mod ends;
mod faults;
mod versions;

use contract::StatusManager;

use crate::case::Case;

/// All cases of the role.
#[must_use]
pub fn cases() -> Vec<Case<StatusManager>> {
    [versions::cases(), ends::cases(), faults::cases()].into_iter().flatten().collect()
}
