//! Pods and containers, off the boards.

use std::collections::BTreeMap;

use contract::pod_worker::{WorkerPhase, WorkerState};
use metrics::Kind::Gauge;
use model::pod;
use model::runtime::ContainerState;

use crate::deps::Deps;
use crate::families::{Families, Row};

pub(crate) const TABLE: &[Row] = &[
    ("kubelet_node_name", Gauge, "1; the name of the node is in the label.", &["node"]),
    ("kubelet_running_pods", Gauge, "Pods that have a ready sandbox.", &[]),
    ("kubelet_running_containers", Gauge, "Containers of the runtime by state, sandboxes aside.", &["container_state"]),
    ("kubelet_desired_pods", Gauge, "Pods that the node is told to run.", &["static"]),
    ("kubelet_active_pods", Gauge, "Pods that may run and have not ended.", &["static"]),
    ("kubelet_mirror_pods", Gauge, "Mirror pods of static pods, as the API server tells.", &[]),
    ("kubelet_working_pods", Gauge, "Pods in work, by why and how far.", &["config", "lifecycle", "static"]),
    ("kubelet_pod_pending_resizes", Gauge, "Resizes of pods that wait or cannot be had.", &["reason"]),
    ("kubelet_pod_in_progress_resizes", Gauge, "Resizes of pods that are being carried out.", &[]),
    ("kubelet_managed_ephemeral_containers", Gauge, "Ephemeral containers in pods of this node.", &[]),
];

/// What is told of pods as a whole.
#[derive(Debug, Default)]
struct Counts {
    desired: [u32; 2],
    active: [u32; 2],
    mirrors: u32,
    ephemeral: usize,
    pending_resizes: BTreeMap<&'static str, u32>,
    resizing: u32,
    working: BTreeMap<(&'static str, &'static str, &'static str), u32>,
}

pub(crate) fn fill(families: &mut Families, deps: &Deps) {
    families.put("kubelet_node_name", &[&deps.node_name], 1.0);
    running(families, deps);
    let counts = count(deps);
    for (which, label) in ["", "true"].into_iter().enumerate() {
        families.put("kubelet_desired_pods", &[label], f64::from(counts.desired[which]));
        families.put("kubelet_active_pods", &[label], f64::from(counts.active[which]));
    }
    families.put("kubelet_mirror_pods", &[], f64::from(counts.mirrors));
    #[allow(clippy::cast_precision_loss, reason = "numbers of metrics are doubles")]
    families.put("kubelet_managed_ephemeral_containers", &[], counts.ephemeral as f64);
    for (reason, n) in &counts.pending_resizes {
        families.put("kubelet_pod_pending_resizes", &[reason], f64::from(*n));
    }
    families.put("kubelet_pod_in_progress_resizes", &[], f64::from(counts.resizing));
    for ((config, lifecycle, is_static), n) in &counts.working {
        families.put("kubelet_working_pods", &[config, lifecycle, is_static], f64::from(*n));
    }
}

fn running(families: &mut Families, deps: &Deps) {
    let mut pods = 0_u32;
    let mut states: BTreeMap<&str, u32> = BTreeMap::new();
    for row in deps.lookup.runtime.snapshot().values() {
        pods += u32::from(row.pod.sandboxes.iter().any(|s| s.ready));
        for container in &row.pod.containers {
            let state = match container.state {
                ContainerState::Running => "running",
                ContainerState::Exited => "exited",
                ContainerState::Created => "created",
                ContainerState::Unknown => "unknown",
            };
            *states.entry(state).or_default() += 1;
        }
    }
    families.put("kubelet_running_pods", &[], f64::from(pods));
    for (state, n) in states {
        families.put("kubelet_running_containers", &[state], f64::from(n));
    }
}

fn count(deps: &Deps) -> Counts {
    let mut counts = Counts { working: all_kinds(), ..Counts::default() };
    let desired = deps.lookup.all();
    for found in &desired {
        let is_static = usize::from(pod::is_static(found.pod()));
        counts.desired[is_static] += 1;
        counts.mirrors += u32::from(found.desired.mirror.is_some());
        counts.ephemeral += pod::ephemeral_containers(found.pod()).count();
        let ended = deps
            .lookup
            .status_of(found)
            .and_then(|s| s.phase.clone())
            .is_some_and(|phase| phase == "Succeeded" || phase == "Failed");
        let ending = deps.workers.get(&found.uid).is_some_and(|w| w.phase >= WorkerPhase::Terminated);
        counts.active[is_static] += u32::from(!ended && !ending);
    }
    for (uid, worker) in deps.workers.snapshot() {
        if worker.phase == WorkerPhase::Finished {
            continue;
        }
        if let Some(pending) = &worker.pending {
            let reason = if pending.infeasible { "infeasible" } else { "deferred" };
            *counts.pending_resizes.entry(reason).or_default() += 1;
        }
        counts.resizing += u32::from(worker.resizing.is_some());
        let wanted = desired.binary_search_by(|f| f.uid.cmp(&uid)).is_ok();
        *counts.working.entry(kind(&worker, wanted)).or_default() += 1;
    }
    counts
}

fn kind(worker: &WorkerState, wanted: bool) -> (&'static str, &'static str, &'static str) {
    let (config, is_static) = match &worker.pod {
        None => ("runtime_only", "unknown"),
        Some(p) => (if wanted { "desired" } else { "orphan" }, if pod::is_static(p) { "true" } else { "" }),
    };
    let lifecycle = match worker.phase {
        WorkerPhase::Waiting | WorkerPhase::Syncing => "sync",
        WorkerPhase::Terminating => "terminating",
        WorkerPhase::Terminated | WorkerPhase::Finished => "terminated",
    };
    (config, lifecycle, is_static)
}

/// All combinations, as a kubelet writes it: this family has measured zeros.
fn all_kinds() -> BTreeMap<(&'static str, &'static str, &'static str), u32> {
    let statics = [("desired", ["", "true"].as_slice()), ("orphan", &["", "true"]), ("runtime_only", &["unknown"])];
    let mut all = BTreeMap::new();
    for (config, statics) in statics {
        for lifecycle in ["sync", "terminating", "terminated"] {
            all.extend(statics.iter().map(|s| ((config, lifecycle, *s), 0)));
        }
    }
    all
}
