//! ProbeManager: schedules and thresholds of liveness, readiness and startup probes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actor::Inlet;
use model::core::Pod;
use model::{ContainerId, PodUid};

use crate::view::Board;

/// Begin probing this pod's regular containers and sidecars. Idempotent: a pod that already has probes keeps them.
#[derive(Clone, Debug)]
pub struct StartProbes {
    /// Pod.
    pub pod: Arc<Pod>,
}
/// Stop probing. Idempotent.
#[derive(Clone, Debug)]
pub struct StopProbes {
    /// Pod.
    pub uid: PodUid,
    /// `true`: liveness and startup probes of regular containers only (a terminating pod keeps its readiness).
    pub keep_readiness: bool,
}
/// Stop the probes of all other pods (housekeeping; the set is complete).
#[derive(Clone, Debug)]
pub struct RetainProbes {
    /// Pods that may still run.
    pub known: BTreeSet<PodUid>,
}

message! {
    StartProbes => (),
    StopProbes => (),
    RetainProbes => (),
}

/// Verdict of one probe on one container instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeVerdict {
    /// No decided result yet.
    Unknown,
    /// Passed its success threshold.
    Success,
    /// Passed its failure threshold.
    Failure,
}

/// Kind of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeKind {
    /// Decides whether the container is up at all; gates the others.
    Startup,
    /// Decides whether the container takes traffic.
    Readiness,
    /// Decides whether the container must be restarted.
    Liveness,
}

/// One row of the probe board.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodProbes {
    /// Latest verdicts by container instance. Absent: none written yet.
    pub verdicts: BTreeMap<ContainerId, BTreeMap<ProbeKind, ProbeVerdict>>,
    /// Probes that exist, by container name.
    pub probes: BTreeMap<String, BTreeSet<ProbeKind>>,
}

impl PodProbes {
    /// The verdict of one probe on one instance.
    #[must_use]
    pub fn verdict(&self, container: &ContainerId, kind: ProbeKind) -> Option<ProbeVerdict> {
        self.verdicts.get(container)?.get(&kind).copied()
    }

    /// Whether a container of this name is probed in this way.
    #[must_use]
    pub fn has(&self, container_name: &str, kind: ProbeKind) -> bool {
        self.probes.get(container_name).is_some_and(|k| k.contains(&kind))
    }
}

/// How others reach ProbeManager.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each field is the route of the message it is named after")]
pub struct ProbeHandle {
    pub start_probes: Inlet<StartProbes>,
    pub stop_probes: Inlet<StopProbes>,
    pub retain_probes: Inlet<RetainProbes>,
    pub view: Board<PodUid, PodProbes>,
}

impl Default for ProbeHandle {
    fn default() -> Self {
        Self {
            start_probes: Inlet::unbound("ProbeManager.StartProbes"),
            stop_probes: Inlet::unbound("ProbeManager.StopProbes"),
            retain_probes: Inlet::unbound("ProbeManager.RetainProbes"),
            view: Board::new(),
        }
    }
}

protocol! {
    /// What a ProbeManager answers.
    ProbeManagerProtocol for ProbeHandle {
        start_probes: StartProbes,
        stop_probes: StopProbes,
        retain_probes: RetainProbes,
    }
}
