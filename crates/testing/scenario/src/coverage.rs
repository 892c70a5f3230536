//! Which decisions were taken: those of the plan, of statuses, of admission and of evictions, by name, as boards tell of them.
//!
//! A decision that no scenario takes is one that nobody judges. Boards are followed for this alone: no checker reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use contract::eviction::PressureView;
use contract::pod_manager::DesiredPod;
use contract::status::StatusEntry;
use model::Timestamp;
use model::core::{ContainerState, PodStatus};
use model::history::{PodHistory, Reason, What};
use sim::SimNode;

/// Decisions that a pod-plan can take, as the board of histories names them.
const PLAN: [(What, &[Reason]); 14] = [
    (
        What::KillPod,
        &[Reason::SandboxMissing, Reason::SandboxMany, Reason::SandboxNotReady, Reason::InitFailed, Reason::AllDone],
    ),
    (What::MakeSandbox, &[Reason::SandboxMissing, Reason::SandboxMany, Reason::SandboxNotReady]),
    (What::PurgeInit, &[Reason::None]),
    (What::PruneInit, &[Reason::None]),
    (
        What::Kill,
        &[
            Reason::KilledDefinition,
            Reason::KilledLiveness,
            Reason::KilledStartup,
            Reason::KilledResize,
            Reason::KilledUnknown,
        ],
    ),
    (What::Reset, &[Reason::RestartAll]),
    (
        What::Run,
        &[
            Reason::Absent,
            Reason::NewSandbox,
            Reason::PreviousInitDone,
            Reason::Exited,
            Reason::NotStarted,
            Reason::KilledDefinition,
            Reason::KilledLiveness,
            Reason::KilledStartup,
            Reason::KilledUnknown,
        ],
    ),
    (What::Hold, &[Reason::Exited, Reason::NotStarted]),
    (What::Resume, &[Reason::Interrupted]),
    (What::ResizeMemory, &[Reason::None]),
    (What::ResizeCpu, &[Reason::None]),
    (What::AwaitInit, &[Reason::None]),
    (What::AwaitStartup, &[Reason::None]),
    (What::AwaitLiveness, &[Reason::None]),
];

/// What else there is to decide, as far as it is known beforehand.
const OTHERS: [&str; 30] = [
    "admission: admitted",
    "admission: OutOfcpu",
    "admission: Evicted",
    "admission: a resize waits",
    "eviction: a pod goes",
    "eviction: DiskPressure",
    "eviction: something is tidied up first",
    "status: Pending",
    "status: Running",
    "status: Succeeded",
    "status: Failed",
    "status: Evicted",
    "status: Preempting",
    "status: Terminated",
    "status: Ready True",
    "status: Ready False ContainersNotReady",
    "status: Initialized False ContainersNotInitialized",
    "status: DisruptionTarget True TerminationByKubelet",
    "status: PodResizeInProgress True",
    "status: waits for ContainerCreating",
    "status: waits for PodInitializing",
    "status: waits for CrashLoopBackOff",
    "status: waits for ErrImagePull",
    "status: waits for ImagePullBackOff",
    "status: waits for RunContainerError",
    "status: waits for CreateContainerError",
    "status: ended Completed",
    "status: ended Error",
    "status: ended OOMKilled",
    "status: ended ContainerStatusUnknown",
];

/// Names of decisions that were taken.
pub type Coverage = BTreeSet<String>;

/// All decisions that are known to exist. Others are taken, too: of them each name counts as well.
#[must_use]
pub fn all_decisions() -> Coverage {
    let of_plan = PLAN.iter().flat_map(|(what, reasons)| reasons.iter().map(|reason| plan(*what, *reason)));
    of_plan.chain(OTHERS.iter().map(|name| (*name).to_owned())).collect()
}

fn plan(what: What, reason: Reason) -> String {
    match reason {
        Reason::None => format!("plan: {what:?}"),
        _ => format!("plan: {what:?} {reason:?}"),
    }
}

/// Who writes down which decisions are taken. A clone is the same one.
#[derive(Clone, Default)]
pub(crate) struct Covered(Arc<Mutex<Coverage>>);

impl Covered {
    pub(crate) fn take(&self) -> Coverage {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, name: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
    }

    /// Follows the boards of this life of the daemon.
    pub(crate) fn follow(&self, node: &SimNode) {
        tokio::task::spawn_local(follow_plans(self.clone(), node.wiring().board::<PodHistory>()));
        let (own, view) = (self.clone(), node.wiring().value::<PressureView>());
        let mut changes = view.subscribe();
        tokio::task::spawn_local(async move {
            while changes.changed().await.is_ok() {
                own.pressure(&view.get());
            }
        });
    }

    /// A status that a worker or PodManager made.
    pub(crate) fn status(&self, row: &StatusEntry) {
        of_status(&row.status).into_iter().for_each(|name| self.add(format!("status: {name}")));
    }

    /// What was decided about a pod that a source has.
    pub(crate) fn desired(&self, row: &DesiredPod) {
        match &row.rejected {
            Some((reason, _)) => self.add(format!("admission: {reason}")),
            None if row.undecided => self.add("admission: not decided yet".to_owned()),
            None => self.add("admission: admitted".to_owned()),
        }
        if row.pending.is_some() {
            self.add("admission: a resize waits".to_owned());
        }
    }

    fn pressure(&self, view: &PressureView) {
        for condition in &view.conditions {
            self.add(format!("eviction: {}", condition.condition));
        }
        if view.victim.is_some() {
            self.add("eviction: a pod goes".to_owned());
        }
        if view.reclaim.is_some() {
            self.add("eviction: something is tidied up first".to_owned());
        }
    }
}

async fn follow_plans(own: Covered, board: contract::board::BoardReader<model::PodUid, PodHistory>) {
    let (mut changes, mut seen) = (board.changes(), None);
    let mut newest: BTreeMap<model::PodUid, Timestamp> = BTreeMap::new();
    while changes.changed().await.is_ok() {
        let changed = changed(&board, &mut seen);
        for (uid, row) in changed.into_iter().filter_map(|uid| Some((uid.clone(), board.get(&uid)?))) {
            let since = newest.get(&uid).copied().unwrap_or(Timestamp::ZERO);
            for t in row.transitions.iter().filter(|t| t.what.is_decision() && t.last >= since) {
                own.add(plan(t.what, t.reason));
            }
            newest.extend(row.transitions.iter().map(|t| t.last).max().map(|last| (uid.clone(), last)));
        }
    }
}

fn of_status(status: &PodStatus) -> Vec<String> {
    let mut names: Vec<String> = status.phase.iter().chain(&status.reason).cloned().collect();
    for c in status.conditions.iter().flatten() {
        let reason = c.reason.as_deref().unwrap_or_default();
        names.push(format!("{} {} {reason}", c.type_, c.status).trim_end().to_owned());
    }
    for c in status.init_container_statuses.iter().chain(&status.container_statuses).flatten() {
        names.extend([&c.state, &c.last_state].into_iter().flatten().flat_map(of_state));
    }
    names
}

fn of_state(state: &ContainerState) -> Option<String> {
    let reason = |reason: &Option<String>| reason.as_deref().unwrap_or("no reason").to_owned();
    match state {
        ContainerState { waiting: Some(waiting), .. } => Some(format!("waits for {}", reason(&waiting.reason))),
        ContainerState { terminated: Some(ended), .. } => Some(format!("ended {}", reason(&ended.reason))),
        ContainerState { running: Some(_), .. } => Some("runs".to_owned()),
        ContainerState { .. } => None,
    }
}

/// The pods whose rows changed since they were looked at last, or all of them.
pub(crate) fn changed<V: Send + Sync + 'static>(
    board: &contract::board::BoardReader<model::PodUid, V>,
    seen: &mut Option<u64>,
) -> BTreeSet<model::PodUid> {
    board.changed(seen).unwrap_or_else(|| board.snapshot().into_keys().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_status_says_has_names() {
        let status: PodStatus = serde_json::from_value(serde_json::json!({
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "False", "reason": "ContainersNotReady" }],
            "containerStatuses": [{
                "name": "a", "image": "i", "imageID": "", "ready": false, "restartCount": 1,
                "state": { "waiting": { "reason": "CrashLoopBackOff" } },
                "lastState": { "terminated": { "exitCode": 1, "reason": "Error" } },
            }],
        }))
        .unwrap_or_else(|e| unreachable!("a status: {e}"));
        let expected = ["Running", "Ready False ContainersNotReady", "waits for CrashLoopBackOff", "ended Error"];
        assert_eq!(of_status(&status), expected);
    }

    #[test]
    fn no_decision_is_known_twice() {
        let count: usize = PLAN.iter().map(|(_, reasons)| reasons.len()).sum::<usize>() + OTHERS.len();
        assert_eq!(all_decisions().len(), count);
        assert!(PLAN.iter().all(|(what, _)| what.is_decision()));
    }
}
