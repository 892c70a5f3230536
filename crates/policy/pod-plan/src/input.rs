//! What a plan is made from.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::allocation::{Amounts, Resizable};
use model::core::Pod;
use model::probe::ProbeVerdict;
use model::runtime::PodObservation;
use model::{ContainerId, Timestamp};

use crate::backoff::CrashBackoff;

/// Verdicts by container id; a container without an entry has no verdict of that kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProbeResults {
    /// Liveness.
    pub liveness: BTreeMap<ContainerId, ProbeVerdict>,
    /// Readiness. No decision here reads it (readiness never gates a start, 4.4); kept so that one value carries all.
    pub readiness: BTreeMap<ContainerId, ProbeVerdict>,
    /// Startup.
    pub startup: BTreeMap<ContainerId, ProbeVerdict>,
}

/// Feature gates that change decisions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gates {
    /// `RestartAllContainersOnContainerExits` (KEP-5532), on by default since 1.36.
    pub restart_all_containers: bool,
    /// What can be resized in place.
    pub resizable: Resizable,
}

impl Default for Gates {
    fn default() -> Self {
        Self { restart_all_containers: true, resizable: Resizable::default() }
    }
}

/// Everything that [`crate::plan`] looks at.
#[derive(Clone, Copy, Debug)]
pub struct PlanInput<'a> {
    /// The pod as it shall be.
    pub pod: &'a Pod,
    /// The pod as the runtime reports it; must satisfy the invariants of [`PodObservation`].
    pub observed: &'a PodObservation,
    /// Probe verdicts.
    pub probes: &'a ProbeResults,
    /// Crash-loop back-off of this pod's containers. `plan` only reads it; call [`CrashBackoff::next`] for each start
    /// that is carried out and has [`crate::ContainerStart::crashed_at`].
    pub backoff: &'a CrashBackoff,
    /// How long ended instances have been known as ended, by a clock that nobody sets. A back-off ends after its delay also
    /// when the wall clock was set back meanwhile.
    pub ended_for: &'a BTreeMap<ContainerId, Duration>,
    /// Containers in state created whose start nobody has tried (a worker died between create and start): they are
    /// started as they are, instead of being replaced with a restart count one higher.
    pub resumable: &'a BTreeSet<ContainerId>,
    /// Containers in state created whose start was tried and failed.
    pub failed_starts: &'a BTreeSet<ContainerId>,
    /// What the runtime was told last of running containers, by name; of those that are not named: all that they shall have.
    pub actuated: &'a BTreeMap<String, Amounts>,
    /// The pod was granted other resources, and its cgroup may not have them yet.
    pub pod_resized: bool,
    /// The status says `AllContainersRestarting`: what was begun is brought to its end, also when the container that asked for
    /// it is gone already.
    pub restarting_all: bool,
    /// Wall clock.
    pub now: Timestamp,
    /// Feature gates.
    pub gates: Gates,
}
