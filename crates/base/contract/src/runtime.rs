//! RuntimeClient: the CRI connection, its lanes and deadlines, and what the runtime reports.

use std::sync::Arc;
use std::time::Duration;

use actor::{AskError, Inlet};
use cri_api::v1::{ContainerConfig, PodSandboxConfig};
use model::runtime::PodObservation;
use model::{ContainerId, PodUid, SandboxId, Timestamp};

use crate::view::{Board, Published};

/// Why a runtime call did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug)]
pub struct RunPodSandbox {
    /// Pod that it is for; also chooses the lane.
    pub uid: PodUid,
    /// Configuration.
    pub config: Arc<PodSandboxConfig>,
    /// Empty: the default handler.
    pub runtime_handler: String,
}
/// Stop a sandbox. Idempotent; NotFound is success.
#[derive(Clone, Debug)]
pub struct StopPodSandbox {
    /// Pod that it belongs to.
    pub uid: PodUid,
    /// Sandbox.
    pub sandbox: SandboxId,
}
/// Remove a stopped sandbox. Idempotent; NotFound is success.
#[derive(Clone, Debug)]
pub struct RemovePodSandbox {
    /// Pod that it belongs to.
    pub uid: PodUid,
    /// Sandbox.
    pub sandbox: SandboxId,
}
/// Create a container. Not idempotent (see [`RunPodSandbox`]).
#[derive(Clone, Debug)]
pub struct CreateContainer {
    /// Pod that it is for.
    pub uid: PodUid,
    /// Sandbox to create it in.
    pub sandbox: SandboxId,
    /// Container.
    pub config: Arc<ContainerConfig>,
    /// The sandbox's configuration, sent again.
    pub sandbox_config: Arc<PodSandboxConfig>,
}
/// Start a created container.
#[derive(Clone, Debug)]
pub struct StartContainer {
    /// Pod that it belongs to.
    pub uid: PodUid,
    /// Container.
    pub container: ContainerId,
}
/// Stop a container. Idempotent; NotFound is success.
#[derive(Clone, Debug)]
pub struct StopContainer {
    /// Pod that it belongs to.
    pub uid: PodUid,
    /// Container.
    pub container: ContainerId,
    /// Seconds until SIGKILL, sent as is.
    pub grace_s: i64,
}
/// Remove a container, running or not. Idempotent; NotFound is success.
#[derive(Clone, Debug)]
pub struct RemoveContainer {
    /// Pod that it belongs to.
    pub uid: PodUid,
    /// Container.
    pub container: ContainerId,
}
/// Run a command in a container and wait for it.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
pub struct Relist;

message! {
    RunPodSandbox => Result<SandboxId, CallError>,
    StopPodSandbox => Result<(), CallError>,
    RemovePodSandbox => Result<(), CallError>,
    CreateContainer => Result<ContainerId, CallError>,
    StartContainer => Result<(), CallError>,
    StopContainer => Result<(), CallError>,
    RemoveContainer => Result<(), CallError>,
    ExecSync => Result<ExecOutcome, CallError>,
    ObservePod => Result<Arc<PodObservation>, CallError>,
    Relist => Result<(), CallError>,
}

/// One row of the runtime board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// What was seen.
    pub pod: Arc<PodObservation>,
    /// Taken before the read began.
    pub observed_at: Timestamp,
}

/// Which source tells of container changes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EventTier {
    /// CRI `GetContainerEvents`.
    CriStream,
    /// containerd's own event service.
    Containerd,
    /// None: the relist alone.
    #[default]
    Relist,
}

/// A handler of the runtime (what a RuntimeClass names), with what it can do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuntimeHandler {
    /// Empty: the default one.
    pub name: String,
    /// Read-only mounts with everything below them.
    pub recursive_read_only_mounts: bool,
    /// Pods with users of their own.
    pub user_namespaces: bool,
}

/// What is known of the runtime as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// What RuntimeClient publishes.
#[derive(Clone, Debug)]
pub struct RuntimeView {
    /// One row per pod that the runtime knows.
    pub pods: Board<PodUid, Observed>,
    /// The runtime itself.
    pub info: Published<RuntimeInfo>,
}

impl Default for RuntimeView {
    fn default() -> Self {
        Self { pods: Board::new(), info: Published::new(RuntimeInfo::unknown()) }
    }
}

/// Longest that a start-path call may queue and run before its asker gives up.
const START_DEADLINE: Duration = Duration::from_secs(15 * 60);
/// Longest that a stop or remove may queue and run, beyond its grace.
const STOP_DEADLINE: Duration = Duration::from_secs(5 * 60);
/// Longest that an observation may take.
const OBSERVE_DEADLINE: Duration = Duration::from_secs(3 * 60);

/// How others reach RuntimeClient.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each field is the route of the message it is named after")]
pub struct RuntimeHandle {
    pub run_pod_sandbox: Inlet<RunPodSandbox>,
    pub stop_pod_sandbox: Inlet<StopPodSandbox>,
    pub remove_pod_sandbox: Inlet<RemovePodSandbox>,
    pub create_container: Inlet<CreateContainer>,
    pub start_container: Inlet<StartContainer>,
    pub stop_container: Inlet<StopContainer>,
    pub remove_container: Inlet<RemoveContainer>,
    pub exec_sync: Inlet<ExecSync>,
    pub observe_pod: Inlet<ObservePod>,
    pub relist: Inlet<Relist>,
    pub view: RuntimeView,
}

impl Default for RuntimeHandle {
    fn default() -> Self {
        Self {
            run_pod_sandbox: Inlet::unbound("RuntimeClient.RunPodSandbox"),
            stop_pod_sandbox: Inlet::unbound("RuntimeClient.StopPodSandbox"),
            remove_pod_sandbox: Inlet::unbound("RuntimeClient.RemovePodSandbox"),
            create_container: Inlet::unbound("RuntimeClient.CreateContainer"),
            start_container: Inlet::unbound("RuntimeClient.StartContainer"),
            stop_container: Inlet::unbound("RuntimeClient.StopContainer"),
            remove_container: Inlet::unbound("RuntimeClient.RemoveContainer"),
            exec_sync: Inlet::unbound("RuntimeClient.ExecSync"),
            observe_pod: Inlet::unbound("RuntimeClient.ObservePod"),
            relist: Inlet::unbound("RuntimeClient.Relist"),
            view: RuntimeView::default(),
        }
    }
}

#[allow(missing_docs, reason = "each method sends the message it is named after")]
impl RuntimeHandle {
    pub async fn run_pod_sandbox(&self, m: RunPodSandbox) -> Result<SandboxId, CallError> {
        self.run_pod_sandbox.ask(m, START_DEADLINE).await?
    }
    pub async fn stop_pod_sandbox(&self, m: StopPodSandbox) -> Result<(), CallError> {
        self.stop_pod_sandbox.ask(m, STOP_DEADLINE).await?
    }
    pub async fn remove_pod_sandbox(&self, m: RemovePodSandbox) -> Result<(), CallError> {
        self.remove_pod_sandbox.ask(m, STOP_DEADLINE).await?
    }
    pub async fn create_container(&self, m: CreateContainer) -> Result<ContainerId, CallError> {
        self.create_container.ask(m, START_DEADLINE).await?
    }
    pub async fn start_container(&self, m: StartContainer) -> Result<(), CallError> {
        self.start_container.ask(m, START_DEADLINE).await?
    }
    pub async fn stop_container(&self, m: StopContainer) -> Result<(), CallError> {
        let deadline = STOP_DEADLINE + Duration::from_secs(u64::try_from(m.grace_s).unwrap_or(0));
        self.stop_container.ask(m, deadline).await?
    }
    pub async fn remove_container(&self, m: RemoveContainer) -> Result<(), CallError> {
        self.remove_container.ask(m, STOP_DEADLINE).await?
    }
    /// A zero timeout means none for the command; the ask is bounded all the same, by 24 h.
    pub async fn exec_sync(&self, m: ExecSync) -> Result<ExecOutcome, CallError> {
        let deadline = if m.timeout.is_zero() { Duration::from_secs(24 * 3600) } else { STOP_DEADLINE + m.timeout };
        self.exec_sync.ask(m, deadline).await?
    }
    pub async fn observe_pod(&self, m: ObservePod) -> Result<Arc<PodObservation>, CallError> {
        self.observe_pod.ask(m, OBSERVE_DEADLINE).await?
    }
    pub async fn relist(&self) -> Result<(), CallError> {
        self.relist.ask(Relist, OBSERVE_DEADLINE).await?
    }
}

protocol! {
    /// What a RuntimeClient answers.
    RuntimeClientProtocol for RuntimeHandle {
        run_pod_sandbox: RunPodSandbox,
        stop_pod_sandbox: StopPodSandbox,
        remove_pod_sandbox: RemovePodSandbox,
        create_container: CreateContainer,
        start_container: StartContainer,
        stop_container: StopContainer,
        remove_container: RemoveContainer,
        exec_sync: ExecSync,
        observe_pod: ObservePod,
        relist: Relist,
    }
}
