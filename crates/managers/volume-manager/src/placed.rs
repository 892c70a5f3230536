//! Persistent volumes that a pod can use.

use std::collections::BTreeMap;

use contract::volume::MountedVolume;

use crate::failed::Failed;

/// A persistent volume that a pod can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub mounted: MountedVolume,
    /// A group that it adds to every container.
    pub group: Option<i64>,
}

/// Each persistent volume of a pod by its name in the pod.
pub(crate) type Outcomes = BTreeMap<String, Result<Placed, Failed>>;
