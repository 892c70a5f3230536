//! ProbeManager: schedules and thresholds of liveness, readiness and startup probes.

use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::core::Pod;
use model::probe::{ProbeKind, ProbeVerdict};
use model::tolerant::Known;
use model::{ContainerId, PodUid};

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
    /// Latest verdicts by container instance. Absent: none written yet. Kinds that are not known here are left out.
    #[serde(deserialize_with = "known_verdicts")]
    pub verdicts: BTreeMap<ContainerId, BTreeMap<ProbeKind, ProbeVerdict>>,
    /// Probes that exist, by container name. Kinds that are not known here are left out.
    #[serde(deserialize_with = "known_kinds")]
    pub probes: BTreeMap<String, BTreeSet<ProbeKind>>,
}

fn known_verdicts<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<ContainerId, BTreeMap<ProbeKind, ProbeVerdict>>, D::Error> {
    let all = BTreeMap::<_, BTreeMap<Known<ProbeKind>, _>>::deserialize(from)?;
    let known = |of: BTreeMap<Known<_>, _>| of.into_iter().filter_map(|(kind, v)| Some((kind.0?, v))).collect();
    Ok(all.into_iter().map(|(id, verdicts)| (id, known(verdicts))).collect())
}

fn known_kinds<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, BTreeSet<ProbeKind>>, D::Error> {
    let all = BTreeMap::<_, BTreeSet<Known<ProbeKind>>>::deserialize(from)?;
    let known = |of: BTreeSet<Known<_>>| of.into_iter().filter_map(|kind| kind.0).collect();
    Ok(all.into_iter().map(|(name, kinds)| (name, known(kinds))).collect())
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
