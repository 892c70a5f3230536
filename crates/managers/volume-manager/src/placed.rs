//! Persistent volumes that a pod can use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use contract::volume::MountedVolume;
use volume_plan::source::Resolved;

use crate::failed::Failed;

/// A persistent volume that a pod can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub mounted: MountedVolume,
    /// What a raw volume is bound on.
    pub bound: Option<PathBuf>,
    /// A group that it adds to every container.
    pub group: Option<i64>,
    /// Its driver wants to be told of it at each step of the pod (`requiresRepublish`).
    pub republish: bool,
    /// What it is.
    pub of: Arc<Resolved>,
}

/// Each persistent volume of a pod by its name in the pod.
pub(crate) type Outcomes = BTreeMap<String, Result<Placed, Failed>>;
