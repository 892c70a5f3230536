//! The pod's status as this worker sees it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use contract::probe::{PodProbes, ProbeKind, ProbeVerdict};
use contract::status::SetPodStatus;
use model::core::PodStatus;
use model::runtime::PodObservation;
use pod_plan::{ProbeResult as Planned, ProbeResults};
use pod_status::{ContainerVerdicts, ProbeFacts, ProbeResult, StatusInput};

use crate::job::{BOOKING, Failure, Job};

fn shown(verdict: ProbeVerdict) -> ProbeResult {
    match verdict {
        ProbeVerdict::Unknown => ProbeResult::Unknown,
        ProbeVerdict::Success => ProbeResult::Success,
        ProbeVerdict::Failure => ProbeResult::Failure,
    }
}

fn planned(verdict: ProbeVerdict) -> Planned {
    match verdict {
        ProbeVerdict::Unknown => Planned::Unknown,
        ProbeVerdict::Success => Planned::Success,
        ProbeVerdict::Failure => Planned::Failure,
    }
}

/// The probe board's row in the words of the status policy.
pub(crate) fn probe_facts(row: &PodProbes) -> ProbeFacts {
    let mut facts = ProbeFacts::default();
    for (id, verdicts) in &row.verdicts {
        let of = |kind| verdicts.get(&kind).copied().map(shown);
        let both = ContainerVerdicts { startup: of(ProbeKind::Startup), readiness: of(ProbeKind::Readiness) };
        facts.verdicts.insert(id.clone(), both);
    }
    for (name, kinds) in &row.probes {
        if kinds.contains(&ProbeKind::Startup) {
            facts.startup_probes.insert(name.clone());
        }
        if kinds.contains(&ProbeKind::Readiness) {
            facts.readiness_probes.insert(name.clone());
        }
    }
    facts
}

/// The probe board's row in the words of the plan.
pub(crate) fn probe_results(row: &PodProbes) -> ProbeResults {
    let of = |kind: ProbeKind| -> BTreeMap<_, _> {
        let verdict = |v: &BTreeMap<ProbeKind, ProbeVerdict>| v.get(&kind).copied().map(planned);
        row.verdicts.iter().filter_map(|(id, v)| Some((id.clone(), verdict(v)?))).collect()
    };
    ProbeResults {
        liveness: of(ProbeKind::Liveness),
        readiness: of(ProbeKind::Readiness),
        startup: of(ProbeKind::Startup),
    }
}

impl Job {
    /// LIFE-OF-A-POD 5/12: what the API would see now.
    pub(crate) fn generate(&self, observed: &PodObservation, is_terminal: bool) -> PodStatus {
        let base = self.deps.status.view.get(&self.uid);
        let row = self.deps.probes.view.get(&self.uid);
        let probes = row.map(|r| probe_facts(&r)).unwrap_or_default();
        let info = self.deps.runtime.view.info.get();
        let mut status = pod_status::generate(&StatusInput {
            pod: &self.pod,
            base: base.as_ref().map(|e| &*e.status),
            observed,
            reasons: &self.memo.reasons,
            probes: &probes,
            is_terminal,
            now: self.now(),
            host_ips: &self.deps.config.node.host_ips,
            runtime_name: &info.name,
            recursive_read_only: false,
        });
        if status.start_time.is_none() && self.memo.record.started_ns > 0 {
            status.start_time = self.memo.record.started_at().to_api();
        }
        status
    }

    /// Hands a status to StatusManager; it must get there before the step goes on.
    pub(crate) async fn publish(&self, status: PodStatus) -> Result<(), Failure> {
        let set = SetPodStatus { pod: self.pod.clone(), status };
        self.ask(&self.deps.status.set_pod_status, set, BOOKING)
            .await
            .map_err(|e| Failure::new(format!("status manager: {e}")))
    }
}

/// Addresses that a status shows for the pod, primary first (for a pod of the host's network: the host's).
pub(crate) fn pod_ips(status: &PodStatus) -> Vec<IpAddr> {
    let listed = status.pod_ips.iter().flatten().map(|p| p.ip.as_str());
    let ips: Vec<IpAddr> = listed.filter_map(|ip| ip.parse().ok()).collect();
    if ips.is_empty() { status.pod_ip.iter().filter_map(|ip| ip.parse().ok()).collect() } else { ips }
}
