//! What a plan says.

use std::fmt;

use model::pod::ContainerKind;
use model::{ContainerId, SandboxId, Timestamp};

use crate::backoff::Hold;
use crate::resize::Resize;
use crate::sandbox::{SandboxChange, SandboxDecision};

/// What to do with one pod. Fields stand in the order of execution (pod-lifecycle 4.6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodPlan {
    /// Outcome of the sandbox change test (pod-lifecycle 4.2): attempt and id to build the sandbox configuration with.
    pub sandbox: SandboxDecision,
    /// Stop every running container and every sandbox. A failure of it aborts the sync.
    pub kill_pod: Option<KillPod>,
    /// Init container instances to remove with their logs before the new sandbox (only when one is created).
    pub purge_init: Vec<ContainerId>,
    /// Containers to stop one after the other, in spec order; the first failure aborts the sync.
    pub kill: Vec<ContainerKill>,
    /// Containers to remove (logs kept) because a rule asked to restart all; in this order, sources last.
    pub reset: Vec<ContainerReset>,
    /// Superseded init container instances to remove.
    pub prune_init: Vec<ContainerId>,
    /// The sandbox to create.
    pub create_sandbox: Option<CreateSandbox>,
    /// What running containers and the pod's cgroup are to be told; before anything starts.
    pub resize: Resize,
    /// Ephemeral containers to start; errors do not stop the others.
    pub ephemeral: Vec<ContainerStart>,
    /// Init containers and sidecars to start, in spec order. A failed init container aborts the sync, a failed sidecar
    /// does not.
    pub init: Vec<ContainerStart>,
    /// Regular containers to start, in spec order; an error on one does not stop the others.
    pub regular: Vec<ContainerStart>,
    /// Running regular containers that stay as they are.
    pub keep: usize,
    /// Whether initialisation is complete, so that regular containers were considered.
    pub initialised: bool,
    /// What the plan waits for, for logs and `why`.
    pub waits: Vec<Wait>,
}

impl PodPlan {
    /// Nothing is to be done but what the sandbox needs.
    #[must_use]
    pub fn new(sandbox: SandboxDecision) -> Self {
        Self {
            sandbox,
            kill_pod: None,
            purge_init: Vec::new(),
            kill: Vec::new(),
            reset: Vec::new(),
            prune_init: Vec::new(),
            create_sandbox: None,
            ephemeral: Vec::new(),
            init: Vec::new(),
            regular: Vec::new(),
            keep: 0,
            initialised: false,
            resize: Resize::default(),
            waits: Vec::new(),
        }
    }

    /// All starts in order of execution: ephemeral, init, regular.
    pub fn starts(&self) -> impl Iterator<Item = &ContainerStart> {
        self.ephemeral.iter().chain(&self.init).chain(&self.regular)
    }

    /// Whether carrying the plan out now would change nothing: no start that is due, nothing to stop or to remove.
    /// Starts held by back-off and a pod kill that finds nothing alive count as nothing.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.kill_pod.as_ref().is_none_or(|k| !k.anything_alive)
            && self.purge_init.is_empty()
            && self.kill.is_empty()
            && self.reset.is_empty()
            && self.prune_init.is_empty()
            && self.create_sandbox.is_none()
            && self.resize.is_none()
            && self.starts().all(|s| s.hold.is_some())
    }

    /// When the earliest held start becomes due.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        self.starts().filter_map(|s| s.hold.map(|h| h.until)).min()
    }

    /// The decisions as short sentences, in order of execution.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        let mut out = Vec::new();
        if let Some(k) = &self.kill_pod {
            out.push(format!("kill the pod: {}", k.cause));
        }
        out.extend(self.purge_init.iter().map(|id| format!("purge init container {id}")));
        out.extend(self.kill.iter().map(|k| format!("kill {}: {}", k.name, k.message)));
        out.extend(self.reset.iter().map(|r| format!("reset {}: {}", r.name, Cause::RestartAll)));
        out.extend(self.prune_init.iter().map(|id| format!("prune init container {id}")));
        if let Some(c) = &self.create_sandbox {
            out.push(format!("create sandbox attempt {}: {}", c.attempt, c.cause));
        }
        for s in self.starts() {
            let verb = match &s.how {
                How::Create { .. } => "start",
                How::Resume { .. } => "resume",
            };
            match s.hold {
                None => out.push(format!("{verb} {}: {}", s.name, s.cause)),
                Some(h) => {
                    out.push(format!("hold {} for {}: {}", s.name, model::go_duration::format_millis(h.delay), s.cause))
                }
            }
        }
        for (what, list) in [("memory", &self.resize.memory), ("cpu", &self.resize.cpu)] {
            out.extend(list.iter().map(|r| format!("resize {} of {}", what, r.name)));
        }
        out.extend(self.waits.iter().map(ToString::to_string));
        out
    }
}

/// Stop all of a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KillPod {
    /// Why.
    pub cause: Cause,
    /// Running containers, to be stopped in parallel under [`crate::kill_order`].
    pub containers: Vec<ContainerId>,
    /// Every known sandbox, ready or not, newest first; stopped after the containers.
    pub sandboxes: Vec<SandboxId>,
    /// Whether anything runs or is ready; when not, the kill only repeats what already happened.
    pub anything_alive: bool,
}

/// Create a sandbox.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateSandbox {
    /// CRI attempt.
    pub attempt: u32,
    /// The sandbox that it replaces. When set, event Normal `SandboxChanged` "Pod sandbox changed, it will be killed and
    /// re-created." is due. Not set for a first sandbox and for a changed network mode.
    pub replaces: Option<SandboxId>,
    /// Why.
    pub cause: SandboxChange,
}

/// Stop one container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerKill {
    /// Runtime id.
    pub id: ContainerId,
    /// Container name.
    pub name: String,
    /// Role in the pod.
    pub kind: ContainerKind,
    /// Text of the `Killing` event, the kubelet's own words.
    pub message: String,
    /// Decides which grace period counts ([`crate::grace::container_grace`]).
    pub reason: KillReason,
    /// Whether this plan starts it again.
    pub restart: bool,
}

/// Why a container is stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
pub enum KillReason {
    /// The whole pod goes.
    Pod,
    /// Name or image no longer equal the specification.
    DefinitionChanged,
    /// Liveness probe failed.
    LivenessProbe,
    /// Startup probe failed.
    StartupProbe,
    /// A resize that needs a restart.
    Resize,
    /// The runtime does not know its state.
    UnknownState,
    /// The postStart hook failed.
    PostStartHook,
    /// A restart rule asked to restart all containers.
    RestartAll,
}

/// Remove one container so that it can start afresh with the same sandbox.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerReset {
    /// Runtime id.
    pub id: ContainerId,
    /// Container name.
    pub name: String,
    /// Role in the pod.
    pub kind: ContainerKind,
    /// Not exited: stop it with grace 0 before removing it.
    pub kill_first: bool,
    /// Its exit matched the rule.
    pub source: bool,
}

/// Start one container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerStart {
    /// Role in the pod.
    pub kind: ContainerKind,
    /// Index in the specification's list of that kind (init containers and sidecars share one list).
    pub index: usize,
    /// Container name.
    pub name: String,
    /// Create it, or start what is already created.
    pub how: How,
    /// Why.
    pub cause: Cause,
    /// Set: the start waits (`CrashLoopBackOff`); event and waiting message come from
    /// [`crate::backoff::event_message`] and [`crate::backoff::waiting_message`].
    pub hold: Option<Hold>,
    /// End of the newest exited instance: the event time for [`crate::CrashBackoff::next`]. Not set: no back-off applies.
    pub crashed_at: Option<Timestamp>,
    /// Newest instance that is no longer running and that this start replaces (its exclusive CPUs are free).
    pub replaces: Option<ContainerId>,
}

/// How a container is started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum How {
    /// Create and start.
    Create {
        /// Restart count. `None`: no instance is known, look at the log directory ([`crate::logs::next_restart_count`]).
        attempt: Option<u32>,
    },
    /// Start the container that exists in state created.
    Resume {
        /// Runtime id.
        id: ContainerId,
        /// Restart count that it was created with.
        attempt: u32,
    },
}

/// Why something is started or stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// No instance exists.
    Absent,
    /// First container of a new sandbox.
    NewSandbox,
    /// The init container before it is done.
    PreviousInitDone,
    /// It exited and the restart rules say yes.
    Exited {
        /// Exit code.
        code: i32,
    },
    /// Created but not running: an earlier start failed.
    NotStarted,
    /// Created by a worker that died before it could start it.
    Interrupted,
    /// Stopped in this plan, and wanted.
    Killed(KillReason),
    /// A rule asked to restart all containers.
    RestartAll,
    /// The sandbox must be replaced, or is gone and nothing may run again.
    Sandbox(SandboxChange),
    /// An init container failed and may not run again.
    InitFailed {
        /// Name of the init container.
        name: String,
    },
    /// No regular container runs or may start.
    AllDone,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Absent => f.write_str("no instance exists"),
            Cause::NewSandbox => f.write_str("new sandbox"),
            Cause::PreviousInitDone => f.write_str("the init container before it is done"),
            Cause::Exited { code } => write!(f, "exited with code {code}"),
            Cause::NotStarted => f.write_str("created but never running"),
            Cause::Interrupted => f.write_str("its start was interrupted"),
            Cause::Killed(reason) => write!(f, "stopped for {reason}"),
            Cause::RestartAll => f.write_str("a restart rule asks to restart all containers"),
            Cause::Sandbox(change) => write!(f, "{change}"),
            Cause::InitFailed { name } => write!(f, "init container {name} failed and may not run again"),
            Cause::AllDone => f.write_str("no regular container runs or may start"),
        }
    }
}

impl fmt::Display for KillReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KillReason::Pod => "the pod's end",
            KillReason::DefinitionChanged => "a changed definition",
            KillReason::LivenessProbe => "a failed liveness probe",
            KillReason::StartupProbe => "a failed startup probe",
            KillReason::Resize => "a resize",
            KillReason::UnknownState => "an unknown state",
            KillReason::PostStartHook => "a failed postStart hook",
            KillReason::RestartAll => "a restart of all containers",
        })
    }
}

/// What a plan waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wait {
    /// An init container runs.
    InitRunning(String),
    /// A sidecar's startup probe has not succeeded.
    SidecarStartup(String),
    /// A sidecar's liveness probe has no result.
    SidecarLiveness(String),
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wait::InitRunning(n) => write!(f, "wait for init container {n} to finish"),
            Wait::SidecarStartup(n) => write!(f, "wait for sidecar {n} to pass its startup probe"),
            Wait::SidecarLiveness(n) => write!(f, "wait for the first liveness result of sidecar {n}"),
        }
    }
}
