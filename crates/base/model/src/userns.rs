//! Users of a pod's own (`hostUsers: false`, KEP-127).

use serde::{Deserialize, Serialize};

use crate::core::Pod;

/// Ids of the host that stand for those of a pod, counted from 0 there; the same for users and groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserNamespace {
    /// First id on the host.
    pub host_id: u32,
    /// Number of ids, a multiple of 65536.
    pub length: u32,
}

impl UserNamespace {
    /// Whether some id is in both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let end = |u: &Self| u64::from(u.host_id) + u64::from(u.length);
        u64::from(self.host_id) < end(other) && u64::from(other.host_id) < end(self)
    }
}

/// `hostUsers: false`.
#[must_use]
pub fn has_own_users(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|s| s.host_users == Some(false))
}
