//! May a new pod run beside those that are here (pod-lifecycle 1.10 and 1.11)?

use std::sync::Arc;

use contract::pod_worker::WorkerPhase;
use contract::status::SetPodStatus;
use model::PodUid;
use model::core::Pod;
use model::event::EventType;
use model::pod::RestartPolicy;
use model::runtime::{ContainerState, PodObservation};

use crate::actor::PodManager;
use crate::merge::Change;

/// May this pod run beside these? `Err` carries the reason and the message of the rejection.
pub type Admission = Arc<dyn Fn(&Pod, &[Arc<Pod>]) -> Result<(), (String, String)> + Send + Sync>;

impl PodManager {
    /// Of new pods those that run already come first, in case not all fit any more: after a restart of the daemon every pod
    /// is new, and a running one must not make room for one that does not run.
    pub(crate) fn put_in_order(&self, changes: &mut [Change]) {
        changes.sort_by_key(|change| match change {
            Change::Remove(_) => 0,
            Change::Add(pod) => {
                let row = self.deps.runtime.view.pods.get(&model::pod::uid(pod));
                if row.is_some_and(|row| row.pod.is_alive()) { 1 } else { 2 }
            }
            Change::Update(_) | Change::Delete(_) | Change::Reconcile(_) => 3,
        });
    }

    /// LIFE-OF-A-POD 3/12: admission, against the pods that are active now.
    pub(crate) fn admit(&self, pod: &Pod) -> Result<(), (String, String)> {
        let uid = model::pod::uid(pod);
        if self.is_over(&uid, pod) {
            // It ran in an earlier life of the daemon, and takes no room.
            return Ok(());
        }
        let others = self.desired.values().flatten().filter(|(other, _)| **other != uid);
        let active: Vec<Arc<Pod>> =
            others.filter(|(other, pod)| self.is_active(other, pod)).map(|(_, pod)| pod.clone()).collect();
        (self.deps.admission)(pod, &active)
    }

    /// Has a worker (which may be too new to be on the board) and may still run.
    fn is_active(&self, uid: &PodUid, pod: &Pod) -> bool {
        let ended = self.deps.workers.get(uid).is_some_and(|w| w.phase >= WorkerPhase::Terminated);
        self.handles.contains_key(uid) && !self.rejected.contains_key(uid) && !ended && !self.is_over(uid, pod)
    }

    fn is_over(&self, uid: &PodUid, pod: &Pod) -> bool {
        self.deps.runtime.view.pods.get(uid).is_some_and(|row| has_run_to_end(pod, &row.pod))
    }

    pub(crate) fn reject(&self, pod: &Arc<Pod>, (reason, message): &(String, String)) {
        tracing::warn!(pod = %model::pod::describe(pod), reason, message, "pod rejected");
        self.emit(pod, EventType::Warning, leak_free_reason(reason), message.clone());
        let status = pod_status::patch::rejected(pod, reason, message);
        if let Err(e) = self.deps.status.set_pod_status.tell(SetPodStatus { pod: pod.clone(), status }) {
            tracing::warn!(pod = %model::pod::describe(pod), error = %e, "status of the rejected pod is not stored");
        }
    }
}

/// Whether nothing of this pod will run again, by what is left of it in the runtime: every container has ended and none is
/// started again.
fn has_run_to_end(pod: &Pod, observed: &PodObservation) -> bool {
    let policy = model::pod::restart_policy(pod);
    let containers = model::pod::regular_containers(pod);
    let over = |name: &str| {
        observed.container(name).is_some_and(|c| {
            let again = match policy {
                RestartPolicy::Always => true,
                RestartPolicy::OnFailure => c.exit_code != 0,
                RestartPolicy::Never => false,
            };
            c.state == ContainerState::Exited && !again
        })
    };
    // Rules of single containers may start them again.
    let plain = containers.iter().all(|c| c.restart_policy.is_none());
    plain && !observed.is_alive() && containers.iter().all(|c| over(&c.name))
}

/// Admission reasons are a closed list; anything else is shown under the general one.
fn leak_free_reason(reason: &str) -> &'static str {
    const KNOWN: &[&str] = &[
        "OutOfcpu",
        "OutOfmemory",
        "OutOfpods",
        "OutOfephemeral-storage",
        "NodePorts",
        "NodeAffinity",
        "NodeName",
        "TaintToleration",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "SysctlForbidden",
        "Evicted",
        "NodeShutdown",
        "AppArmor",
    ];
    KNOWN.iter().find(|k| **k == reason).copied().unwrap_or("UnexpectedAdmissionError")
}

#[cfg(test)]
mod tests;
