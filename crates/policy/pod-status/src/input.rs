//! What a status is computed from.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use model::allocation::{Amounts, PendingResize, ResizeInProgress};
use model::core::{Pod, PodStatus};
use model::probe::ProbeVerdict;
use model::runtime::PodObservation;
use model::{ContainerId, Timestamp};

/// Everything that [`crate::generate()`] looks at.
#[derive(Clone, Copy, Debug)]
pub struct StatusInput<'a> {
    /// Specification, with the API's copy of the status in `pod.status` (absent for static pods).
    pub pod: &'a Pod,
    /// StatusManager's copy, when it has one.
    pub base: Option<&'a PodStatus>,
    /// What the runtime reports.
    pub observed: &'a PodObservation,
    /// Why containers could not be started lately, by container name (the reason cache).
    pub reasons: &'a BTreeMap<String, WaitingReason>,
    /// Probes and their verdicts.
    pub probes: &'a ProbeFacts,
    /// The worker has stopped all containers and will start none any more.
    pub is_terminal: bool,
    /// The gate RestartAllContainersOnContainerExits (KEP-5532).
    pub restart_all: bool,
    /// Wall clock.
    pub now: Timestamp,
    /// Addresses of the node, primary first; empty when not known yet.
    pub host_ips: &'a [IpAddr],
    /// Scheme of container ids, e.g. `containerd`.
    pub runtime_name: &'a str,
    /// The runtime handler of this pod supports recursive read-only mounts (KEP-3857).
    pub recursive_read_only: bool,
    /// How far resizes of it are.
    pub resize: &'a ResizeFacts,
}

/// What is known of resizes of one pod (KEP-1287).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ResizeFacts {
    /// One that is not granted.
    pub pending: Option<PendingResize>,
    /// One that is granted and not carried out yet.
    pub in_progress: Option<ResizeInProgress>,
    /// What the runtime was told last of running containers, where that is not all that they shall have.
    pub actuated: BTreeMap<String, Amounts>,
}

/// Why a container is not running, as its waiting state shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingReason {
    /// CamelCase, e.g. `CrashLoopBackOff`.
    pub reason: String,
    /// Text for people.
    pub message: String,
}

/// Verdicts on one container instance; `None`: nothing recorded yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ContainerVerdicts {
    /// Startup probe.
    pub startup: Option<ProbeVerdict>,
    /// Readiness probe.
    pub readiness: Option<ProbeVerdict>,
}

/// What the probes of one pod say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProbeFacts {
    /// By container instance.
    pub verdicts: BTreeMap<ContainerId, ContainerVerdicts>,
    /// Names of containers with a startup probe at work.
    pub startup_probes: BTreeSet<String>,
    /// Names of containers with a readiness probe at work.
    pub readiness_probes: BTreeSet<String>,
}

impl ProbeFacts {
    pub(crate) fn verdicts(&self, id: &str) -> ContainerVerdicts {
        self.verdicts.get(id).copied().unwrap_or_default()
    }
}
