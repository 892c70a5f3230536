//! The pod's status as this worker sees it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use contract::probe::PodProbes;
use contract::runtime::RuntimeInfo;
use contract::status::{SetPodStatus, StatusEntry};
use model::core::PodStatus;
use model::probe::{ProbeKind, ProbeVerdict};
use model::runtime::PodObservation;
use pod_plan::ProbeResults;
use pod_status::{ContainerVerdicts, ProbeFacts, ResizeFacts, StatusInput};

use crate::job::{Failure, Job};

/// The probe board's row in the words of the status policy.
pub(crate) fn probe_facts(row: &PodProbes) -> ProbeFacts {
    let mut facts = ProbeFacts::default();
    for (id, verdicts) in &row.verdicts {
        let of = |kind| verdicts.get(&kind).copied();
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
        let verdict = |v: &BTreeMap<ProbeKind, ProbeVerdict>| v.get(&kind).copied();
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
        let base = self.crew.board::<StatusEntry>().get(&self.uid);
        let row = self.crew.board::<PodProbes>().get(&self.uid);
        let probes = match row {
            Some(row) => probe_facts(&row),
            None => self.probes_to_come(base.as_deref(), observed),
        };
        let host_ips = self.host_ips();
        let info = self.crew.value::<RuntimeInfo>().get();
        let mut status = pod_status::generate(&StatusInput {
            pod: &self.pod,
            base: base.as_ref().map(|e| &*e.status),
            observed,
            reasons: &self.memo.reasons,
            probes: &probes,
            is_terminal,
            restart_all: self.deps.config.restart_all_containers,
            now: self.now(),
            host_ips: &host_ips,
            runtime_name: &info.name,
            recursive_read_only: self.recursive_read_only(observed),
            resize: &ResizeFacts {
                pending: self.pending.clone(),
                in_progress: self.memo.resize.clone(),
                actuated: self.memo.record.actuated.iter().map(|(name, a)| (name.clone(), a.amounts)).collect(),
            },
        });
        pod_status::patch::keep_counts(&mut status, &self.memo.record.counts);
        if status.start_time.is_none() && self.memo.record.started_ns > 0 {
            status.start_time = self.memo.record.started_at().to_api();
        }
        status
    }

    /// The probes of a pod that ProbeManager has no row of yet, as right after a start of the daemon: what was ready stays so,
    /// and what was not does not become so for a moment. Of a static pod without a status nothing is known; its containers
    /// count as ready until ProbeManager has read their verdicts from the journal.
    fn probes_to_come(&self, base: Option<&StatusEntry>, observed: &PodObservation) -> ProbeFacts {
        let known = base.map(|e| &*e.status).or(self.pod.status.as_ref());
        let lists = known.into_iter().flat_map(|s| [&s.init_container_statuses, &s.container_statuses]);
        let known: Vec<_> = lists.flatten().flatten().filter_map(|c| c.container_id.as_deref()).collect();
        let is_static = model::pod::is_static(&self.pod);
        let is_published = |name: &str| {
            let Some(instance) = observed.container(name) else { return true };
            !is_static || known.iter().any(|id| id.ends_with(instance.id.as_str()))
        };
        let mut facts = ProbeFacts::default();
        let sidecars = model::pod::init_containers(&self.pod).iter().filter(|c| model::pod::is_sidecar(c));
        for c in model::pod::regular_containers(&self.pod).iter().chain(sidecars).filter(|c| is_published(&c.name)) {
            if c.startup_probe.is_some() {
                facts.startup_probes.insert(c.name.clone());
            }
            if c.readiness_probe.is_some() {
                facts.readiness_probes.insert(c.name.clone());
            }
        }
        facts
    }

    /// Hands a status to StatusManager; it must get there before the step goes on.
    pub(crate) async fn publish(&self, status: impl Into<Arc<PodStatus>>) -> Result<(), Failure> {
        let set = SetPodStatus { pod: self.pod.clone(), status: status.into() };
        self.note_status(&set.status);
        self.ask(set).await.map_err(|e| Failure::new(format!("status manager: {e}")))
    }
}

/// Addresses that a status shows for the pod, primary first (for a pod of the host's network: the host's).
pub(crate) fn pod_ips(status: &PodStatus) -> Vec<IpAddr> {
    let listed = status.pod_ips.iter().flatten().map(|p| p.ip.as_str());
    let ips: Vec<IpAddr> = listed.filter_map(|ip| ip.parse().ok()).collect();
    if ips.is_empty() { status.pod_ip.iter().filter_map(|ip| ip.parse().ok()).collect() } else { ips }
}
