//! ProbeManager: schedules and thresholds of liveness, readiness and startup probes.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use model::core::Pod;
use model::probe::{ProbeKind, ProbeVerdict};
use model::{ContainerId, PodUid};

use crate::event::RecordEvent;
use crate::runtime::ExecSync;
use crate::status::StatusEntry;

/// Begin probing this pod's regular containers and sidecars. Idempotent: a pod that already has probes keeps them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartProbes {
    /// Pod.
    pub pod: Arc<Pod>,
}
/// Stop probing. Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StopProbes {
    /// Pod.
    pub uid: PodUid,
    /// `true`: liveness and startup probes of regular containers only (a terminating pod keeps its readiness).
    pub keep_readiness: bool,
}
/// Stop the probes of all other pods (housekeeping; the set is complete).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RetainProbes {
    /// Pods that may still run.
    pub known: BTreeSet<PodUid>,
}

/// One row of the probe board.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

role! {
    /// Schedules of liveness, readiness and startup probes, and what their outcomes add up to.
    ProbeManager in probe_manager, actor "probe-manager";
    answers {
        StartProbes => (), within Duration::from_secs(30), Repeat;
        StopProbes => (), within Duration::from_secs(30), Repeat;
        RetainProbes => (), within Duration::from_secs(30), Repeat;
    }
    posts { table PodUid => PodProbes; }
    asks { ExecSync, RecordEvent }
    reads { StatusEntry }
}
