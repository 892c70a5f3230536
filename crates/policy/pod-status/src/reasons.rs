//! Reason and message texts that tools know by heart; they must not vary.

/// Container waits: its pod has no init containers.
pub const CONTAINER_CREATING: &str = "ContainerCreating";
/// Container waits: its pod has init containers.
pub const POD_INITIALIZING: &str = "PodInitializing";
/// A container of which the runtime lost the end.
pub const CONTAINER_STATUS_UNKNOWN: &str = "ContainerStatusUnknown";
/// The whole pod restarts on a container's rule (KEP-5532).
pub const RESTARTING_ALL_CONTAINERS: &str = "RestartingAllContainers";
/// Message beside it, of a container that was removed for this.
pub(crate) const REMOVED_WITH_ALL: &str = "The container is removed because RestartAllContainers in place";
/// Exit code of a container of which the end is unknown.
pub const UNKNOWN_EXIT_CODE: i32 = 137;

pub(crate) const GONE_WHEN_DELETED: &str =
    "The container could not be located when the pod was deleted.  The container used to be Running";
pub(crate) const GONE_WHEN_TERMINATED: &str = "The container could not be located when the pod was terminated";
pub(crate) const LOST_INIT: &str = "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally";

/// Pod ran longer than `activeDeadlineSeconds`; also the reason of its event.
pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
/// Message beside [`DEADLINE_EXCEEDED`].
pub const DEADLINE_MESSAGE: &str = "Pod was active on the node longer than the specified deadline";

/// Condition types.
pub mod condition {
    /// Bound to this node.
    pub const POD_SCHEDULED: &str = "PodScheduled";
    /// Sandbox and network are there (KEP-3085).
    pub const READY_TO_START: &str = "PodReadyToStartContainers";
    /// Init containers are done.
    pub const INITIALIZED: &str = "Initialized";
    /// All containers are ready.
    pub const CONTAINERS_READY: &str = "ContainersReady";
    /// All containers and readiness gates are ready.
    pub const READY: &str = "Ready";
    /// The node ended the pod.
    pub const DISRUPTION_TARGET: &str = "DisruptionTarget";
    /// A resize is being carried out.
    pub const RESIZE_IN_PROGRESS: &str = "PodResizeInProgress";
    /// A resize waits or is impossible.
    pub const RESIZE_PENDING: &str = "PodResizePending";
    /// All containers are being restarted on a rule (KEP-5532).
    pub const ALL_CONTAINERS_RESTARTING: &str = "AllContainersRestarting";
}

/// Phases of a pod.
pub mod pod_phase {
    /// Not all containers have started once.
    pub const PENDING: &str = "Pending";
    /// At least one container runs or is being restarted.
    pub const RUNNING: &str = "Running";
    /// All containers ended well.
    pub const SUCCEEDED: &str = "Succeeded";
    /// At least one container failed for good, or the node ended the pod.
    pub const FAILED: &str = "Failed";
}
