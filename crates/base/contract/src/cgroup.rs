//! CgroupManager: QoS tiers and pod cgroups.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

use actor::AskError;
use model::PodUid;
use model::core::Pod;
use model::resources::CgroupValues;

/// Why a cgroup is not as wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct CgroupError {
    /// Text for people.
    pub message: String,
}

impl From<AskError> for CgroupError {
    fn from(e: AskError) -> Self {
        Self { message: format!("cgroup manager: {e}") }
    }
}

/// Make sure that the pod's cgroup exists (limits are written when it is made, an existing one is left as it is) and that
/// the QoS tiers count it. Idempotent. Answers with the cgroup parent to send to the runtime.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnsurePodCgroup {
    /// Pod.
    pub pod: Arc<Pod>,
}
/// Kill what still runs in the pod's cgroup and remove it; the QoS tiers no longer count it. Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemovePodCgroup {
    /// Pod.
    pub uid: PodUid,
}
/// Cut the cpu of an orphaned pod to the minimum while its volumes are still mounted. Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThrottlePodCgroup {
    /// Pod.
    pub uid: PodUid,
}

/// Tell which limits the pod's cgroup has, and what is used in it. Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadPodCgroup {
    /// Pod.
    pub pod: Arc<Pod>,
}
/// Answer of [`ReadPodCgroup`].
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PodCgroupUse {
    /// CPU and memory limits in force; empty where pods have no cgroups.
    pub values: CgroupValues,
    /// Memory in use in bytes, where it can be read.
    pub memory_bytes: Option<u64>,
    /// As `memory_bytes`, by name of the cgroup below: that of a container has its id in it. What has ended meanwhile is left out.
    pub children: BTreeMap<String, Option<u64>>,
}
/// Write limits of the pod's cgroup, as part of a resize. Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResizePodCgroup {
    /// Pod.
    pub pod: Arc<Pod>,
    /// What is set is written, the rest stays.
    pub values: CgroupValues,
}

/// Answer of [`EnsurePodCgroup`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodCgroup {
    /// `LinuxPodSandboxConfig.cgroup_parent` in the form of the driver; the configured root when pods have no cgroups.
    pub parent: String,
    /// It was there before.
    pub existed: bool,
}

/// One row of the cgroup board: a pod cgroup that exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodCgroupRow {
    /// Path below the cgroup mount point, in the form of the driver.
    pub path: String,
}
