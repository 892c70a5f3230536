//! Pods that make room for a critical one, be it new or one that grows.

use std::collections::BTreeSet;

use model::{PodUid, Timestamp};

/// Pods that are stopped so that another one has room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Preemption {
    pub(crate) victims: BTreeSet<PodUid>,
    /// Nobody waits longer for them.
    pub(crate) until: Timestamp,
}

impl Preemption {
    pub(crate) fn is_over(&self, now: Timestamp, is_gone: impl Fn(&PodUid) -> bool) -> bool {
        self.until <= now || self.victims.iter().all(is_gone)
    }
}
