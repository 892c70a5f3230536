//! RuntimeClient: the CRI connection, its limits and deadlines, and what the runtime reports.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

use actor::AskError;
use cri_api::v1::{ContainerConfig, LinuxContainerResources, PodSandboxConfig};
use model::runtime::{EventTier, PodObservation};
use model::{ContainerId, PodUid, SandboxId, Timestamp};

/// Why a runtime call did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct CallError {
    /// Class of the failure.
    pub kind: CallErrorKind,
    /// The runtime's description (gRPC status message only), or ours.
    pub message: String,
    /// gRPC status code as Go prints it, e.g. `NotFound`; empty: not the runtime's words.
    pub code: String,
}

/// Class of a failed runtime call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum CallErrorKind {
    /// The object does not exist (gRPC NotFound).
    NotFound,
    /// The runtime has no such call (gRPC Unimplemented).
    Unimplemented,
    /// The deadline passed; the runtime may still be working on it.
    Timeout,
    /// No connection to the runtime.
    Unavailable,
    /// RuntimeClient itself did not answer (restarted, overloaded, replaced). Safe to retry after looking again.
    Lost,
    /// Anything else that the runtime said.
    Failed,
}
model::tolerant!(CallErrorKind, else CallErrorKind::Failed);

impl CallError {
    /// A failure that the runtime did not put into words.
    #[must_use]
    pub fn new(kind: CallErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), code: String::new() }
    }

    /// As a Go client prints it (`rpc error: code = NotFound desc = ...`), for texts that a kubelet writes in that form.
    #[must_use]
    pub fn go_text(&self) -> String {
        if self.code.is_empty() {
            return self.message.clone();
        }
        format!("rpc error: code = {} desc = {}", self.code, self.message)
    }

    /// gRPC NotFound.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind == CallErrorKind::NotFound
    }
}

impl From<AskError> for CallError {
    fn from(e: AskError) -> Self {
        let kind = match e {
            AskError::Timeout { .. } => CallErrorKind::Timeout,
            AskError::NotDelivered | AskError::Overloaded | AskError::Crashed => CallErrorKind::Lost,
        };
        Self::new(kind, format!("runtime client: {e}"))
    }
}

/// Create and start a sandbox. Not idempotent: on [`CallErrorKind::Timeout`] or `Lost` observe the pod before a retry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunPodSandbox {
    /// Pod that it is for; calls that start something for one pod take turns.
    pub uid: PodUid,
    /// Configuration.
    #[serde(with = "crate::wire")]
    pub config: Arc<PodSandboxConfig>,
    /// Empty: the default handler.
    pub runtime_handler: String,
}
/// Stop a sandbox. Idempotent; NotFound is success.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StopPodSandbox {
    /// Pod that it belongs to.
    pub uid: PodUid,
    /// Sandbox.
    pub sandbox: SandboxId,
}
/// Remove a stopped sandbox. Idempotent; NotFound is success.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemovePodSandbox {
    /// Pod that it belongs to.
    pub uid: PodUid,
    /// Sandbox.
    pub sandbox: SandboxId,
}
/// Create a container. Not idempotent (see [`RunPodSandbox`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreateContainer {
    /// Pod that it is for.
    pub uid: PodUid,
    /// Sandbox to create it in.
    pub sandbox: SandboxId,
    /// Container.
    #[serde(with = "crate::wire")]
    pub config: Arc<ContainerConfig>,
    /// The sandbox's configuration, sent again.
    #[serde(with = "crate::wire")]
    pub sandbox_config: Arc<PodSandboxConfig>,
}
/// Start a created container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartContainer {
    /// Pod that it belongs to.
    pub uid: PodUid,
    /// Container.
    pub container: ContainerId,
}
/// Stop a container. Idempotent; NotFound is success.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StopContainer {
    /// Pod that it belongs to.
    pub uid: PodUid,
    /// Container.
    pub container: ContainerId,
    /// Seconds until SIGKILL, sent as is.
    pub grace_s: i64,
}
/// Remove a container, running or not. Idempotent; NotFound is success.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoveContainer {
    /// Pod that it belongs to.
    pub uid: PodUid,
    /// Container.
    pub container: ContainerId,
}
/// Change the resources of a running container. Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdateContainerResources {
    /// Pod that it belongs to.
    pub uid: PodUid,
    /// Container.
    pub container: ContainerId,
    /// All of them, changed or not.
    #[serde(with = "crate::wire")]
    pub linux: Arc<LinuxContainerResources>,
}
/// Tell the runtime what the pod as a whole has now. Idempotent; a runtime that does not have the call answers with success.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdatePodSandboxResources {
    /// Pod that it belongs to.
    pub uid: PodUid,
    /// Sandbox.
    pub sandbox: SandboxId,
    /// What the runtime itself needs for the pod.
    #[serde(with = "crate::wire")]
    pub linux_overhead: Arc<LinuxContainerResources>,
    /// What its containers have together.
    #[serde(with = "crate::wire")]
    pub linux: Arc<LinuxContainerResources>,
}
/// Run a command in a container and wait for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExecSync {
    /// Pod that it belongs to.
    pub uid: PodUid,
    /// Container.
    pub container: ContainerId,
    /// Command and arguments.
    pub command: Vec<String>,
    /// Zero: none.
    pub timeout: Duration,
}
/// Outcome of [`ExecSync`]; a non-zero exit code is no error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecOutcome {
    /// Exit code.
    pub exit_code: i32,
    /// Standard output, as far as the runtime hands it over.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}
/// Tell what the runtime has of this pod, not older than the last mutating call for it that was answered (or that died
/// unanswered). Served from the board when that is fresh enough, else read from the runtime; the board is updated.
/// A pod that the runtime does not know yields an empty observation, no error.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ObservePod {
    /// Pod.
    pub uid: PodUid,
    /// Namespace, for an empty observation.
    pub namespace: String,
    /// Name, for an empty observation.
    pub name: String,
    /// `true`: read from the runtime in any case (final status of a terminated pod).
    pub force: bool,
}
/// Read everything from the runtime now and update the board (housekeeping wants a view no older than its start).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Relist;

/// One row of the runtime board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// What was seen.
    pub pod: Arc<PodObservation>,
    /// Taken before the read began.
    pub observed_at: Timestamp,
}

/// A handler of the runtime (what a RuntimeClass names), with what it can do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RuntimeHandler {
    /// Empty: the default one.
    pub name: String,
    /// Read-only mounts with everything below them.
    pub recursive_read_only_mounts: bool,
    /// Pods with users of their own.
    pub user_namespaces: bool,
}

/// What is known of the runtime as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeInfo {
    /// `containerd`, `cri-o`: prefix of container ids in the API. Empty until the first handshake.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Last Status call was good and said RuntimeReady.
    pub ready: bool,
    /// NetworkReady, or why not.
    pub network: Result<(), String>,
    /// Runtime condition that failed, or the connection error.
    pub error: Option<String>,
    /// Board rows may be outdated (connection lost, relist failing).
    pub stale: bool,
    /// First complete relist is done.
    pub listed: bool,
    /// Start of the latest complete relist.
    pub last_relist: Timestamp,
    /// Who tells of changes.
    pub tier: EventTier,
    /// Rows that a relist found different from what events had told.
    pub divergences: u64,
    /// Handlers, sorted by name; none where the runtime tells of none.
    pub handlers: Vec<RuntimeHandler>,
    /// Whether it honours `supplementalGroupsPolicy`; absent where it tells of no features.
    pub supplemental_groups_policy: Option<bool>,
}

impl RuntimeInfo {
    /// Before the first contact.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            name: String::new(),
            version: String::new(),
            ready: false,
            network: Err("container runtime status check may not have completed yet".to_owned()),
            error: None,
            stale: false,
            listed: false,
            last_relist: Timestamp::ZERO,
            tier: EventTier::Relist,
            divergences: 0,
            handlers: Vec::new(),
            supplemental_groups_policy: None,
        }
    }
}

/// Tell the runtime which networks the cluster gives to the pods of this node. Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetPodNetworks {
    /// `podCIDRs`, separated by commas.
    pub cidrs: String,
}
