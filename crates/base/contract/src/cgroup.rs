//! CgroupManager: QoS tiers and pod cgroups.

use std::sync::Arc;

use actor::{AskError, Inlet};
use model::PodUid;
use model::core::Pod;

use crate::view::Board;

/// Why a cgroup is not as wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
#[derive(Clone, Debug)]
pub struct EnsurePodCgroup {
    /// Pod.
    pub pod: Arc<Pod>,
}
/// Kill what still runs in the pod's cgroup and remove it; the QoS tiers no longer count it. Idempotent.
#[derive(Clone, Debug)]
pub struct RemovePodCgroup {
    /// Pod.
    pub uid: PodUid,
}
/// Cut the cpu of an orphaned pod to the minimum while its volumes are still mounted. Idempotent.
#[derive(Clone, Debug)]
pub struct ThrottlePodCgroup {
    /// Pod.
    pub uid: PodUid,
}

message! {
    EnsurePodCgroup => Result<PodCgroup, CgroupError>,
    RemovePodCgroup => Result<(), CgroupError>,
    ThrottlePodCgroup => Result<(), CgroupError>,
}

/// Answer of [`EnsurePodCgroup`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCgroup {
    /// `LinuxPodSandboxConfig.cgroup_parent` in the form of the driver; the configured root when pods have no cgroups.
    pub parent: String,
    /// It was there before.
    pub existed: bool,
}

/// One row of the cgroup board: a pod cgroup that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCgroupRow {
    /// Path below the cgroup mount point, in the form of the driver.
    pub path: String,
}

/// How others reach CgroupManager.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each field is the route of the message it is named after")]
pub struct CgroupHandle {
    pub ensure_pod_cgroup: Inlet<EnsurePodCgroup>,
    pub remove_pod_cgroup: Inlet<RemovePodCgroup>,
    pub throttle_pod_cgroup: Inlet<ThrottlePodCgroup>,
    pub view: Board<PodUid, PodCgroupRow>,
}

impl Default for CgroupHandle {
    fn default() -> Self {
        Self {
            ensure_pod_cgroup: Inlet::unbound("CgroupManager.EnsurePodCgroup"),
            remove_pod_cgroup: Inlet::unbound("CgroupManager.RemovePodCgroup"),
            throttle_pod_cgroup: Inlet::unbound("CgroupManager.ThrottlePodCgroup"),
            view: Board::new(),
        }
    }
}

protocol! {
    /// What a CgroupManager answers.
    CgroupManagerProtocol for CgroupHandle {
        ensure_pod_cgroup: EnsurePodCgroup,
        remove_pod_cgroup: RemovePodCgroup,
        throttle_pod_cgroup: ThrottlePodCgroup,
    }
}
