//! Pure: where one pod is in its life, and what an update makes of it (pod-lifecycle 2.1 to 2.5).

use std::sync::Arc;

use contract::pod_worker::{KillRequest, UpdateKind, UpdatePod, WorkerPhase, WorkerState};
use model::allocation::PendingResize;
use model::core::Pod;
use pod_plan::grace::pod_grace;

/// State of the machine. Phases only move forward.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Where the pod is.
    pub phase: WorkerPhase,
    /// Newest specification; `None`: only the runtime knows the pod.
    pub pod: Option<Arc<Pod>>,
    /// A resize that is not granted.
    pub pending: Option<PendingResize>,
    /// Every kill asked for so far, merged.
    pub kill: KillRequest,
    /// Stopping was asked for.
    pub termination_requested: bool,
    /// The last sync has ended and stopping has really begun.
    pub started_terminating: bool,
    /// Effective grace in seconds, once stopping was asked for. Never grows.
    pub grace_s: Option<i64>,
    /// May start: no other pod of its full name runs.
    pub granted: bool,
}

/// What an update asks the actor to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing new.
    Nothing,
    /// Take a step when none is under way.
    Step,
    /// As `Step`; and the step under way should end early where it can.
    Interrupt,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing to do now.
    Rest,
    /// Make the pod run as its specification says.
    Sync,
    /// Stop its containers.
    Terminate,
    /// Stop the containers of a pod that only the runtime knows.
    TerminateOrphan,
    /// Containers are gone: volumes, cgroup, final status.
    CleanUp,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            phase: WorkerPhase::Waiting,
            pod: None,
            pending: None,
            kill: KillRequest::default(),
            termination_requested: false,
            started_terminating: false,
            grace_s: None,
            granted: false,
        }
    }
}

impl Machine {
    /// A rebuilt worker goes on where its board row says.
    #[must_use]
    pub fn recover(row: &WorkerState) -> Self {
        let mut m = Self {
            phase: row.phase,
            pod: row.pod.clone(),
            pending: row.pending.clone(),
            kill: row.kill.clone().unwrap_or_default(),
            termination_requested: row.termination_requested,
            started_terminating: row.started_terminating,
            grace_s: None,
            granted: row.phase > WorkerPhase::Waiting,
        };
        if m.termination_requested {
            m.shorten_grace();
        }
        m
    }

    /// Whether this worker has had no update yet.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.pod.is_none() && !self.termination_requested
    }

    /// Applies an update. `alive`: the runtime has a running container or a ready sandbox of this pod.
    pub fn update(&mut self, msg: UpdatePod, alive: bool) -> Reaction {
        if self.phase == WorkerPhase::Finished || (msg.kind == UpdateKind::Create && self.termination_requested) {
            return Reaction::Nothing;
        }
        let first = self.is_new();
        let same = msg.pod.is_some() && msg.pod == self.pod && msg.pending == self.pending;
        if let Some(pod) = msg.pod {
            self.granted |= !model::pod::is_static(&pod);
            self.pod = Some(pod);
            self.pending = msg.pending;
        }
        if first && !alive && self.is_terminal() {
            // Nothing of it is left in the runtime: only the final clean-up remains.
            self.termination_requested = true;
            self.started_terminating = true;
            self.phase = WorkerPhase::Terminated;
            return Reaction::Step;
        }
        let asked_before = (self.termination_requested, self.grace_s);
        self.merge_kill(&msg.kind);
        if self.phase == WorkerPhase::Terminated {
            return Reaction::Nothing;
        }
        if self.termination_requested {
            self.shorten_grace();
            if self.phase == WorkerPhase::Waiting && !self.granted && self.pod.is_some() && !alive {
                // A static pod that was never started and is not left over from an earlier life: nothing to stop, nothing to
                // clean up. A pod of the API goes the whole way, so that its object gets its last status.
                self.phase = WorkerPhase::Finished;
                return Reaction::Step;
            }
            self.phase = WorkerPhase::Terminating;
            return if asked_before == (true, self.grace_s) { Reaction::Step } else { Reaction::Interrupt };
        }
        if self.granted {
            self.phase = WorkerPhase::Syncing;
        }
        if same && msg.kind == UpdateKind::Update { Reaction::Nothing } else { Reaction::Step }
    }

    fn is_terminal(&self) -> bool {
        self.pod.as_deref().is_some_and(model::pod::is_terminal)
    }

    fn merge_kill(&mut self, kind: &UpdateKind) {
        let deleting = self.pod.as_ref().is_some_and(|p| p.metadata.deletion_timestamp.is_some());
        if deleting || self.pod.is_none() {
            self.termination_requested = true;
            self.kill.deleted = true;
        }
        if self.is_terminal() {
            self.termination_requested = true;
        }
        if let UpdateKind::Kill(request) = kind {
            self.termination_requested = true;
            self.kill.evicted |= request.evicted;
            self.kill.deleted |= request.deleted;
            self.kill.grace_s = match (self.kill.grace_s, request.grace_s) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            if request.reason.is_some() {
                self.kill.reason.clone_from(&request.reason);
                self.kill.own_fault = request.own_fault;
            }
        }
    }

    fn shorten_grace(&mut self) {
        self.grace_s = Some(match &self.pod {
            Some(pod) => pod_grace(self.grace_s, pod, self.kill.grace_s).seconds,
            None => self.kill.grace_s.unwrap_or(1).max(1),
        });
    }

    /// No other pod of its full name runs any more.
    pub fn grant(&mut self) -> Reaction {
        if self.granted || self.phase != WorkerPhase::Waiting {
            return Reaction::Nothing;
        }
        self.granted = true;
        if self.pod.is_none() || self.termination_requested {
            return Reaction::Nothing;
        }
        self.phase = WorkerPhase::Syncing;
        Reaction::Step
    }

    /// What to do next.
    #[must_use]
    pub fn step(&self) -> Step {
        match self.phase {
            WorkerPhase::Waiting | WorkerPhase::Finished => Step::Rest,
            WorkerPhase::Syncing => Step::Sync,
            WorkerPhase::Terminating if self.pod.is_none() => Step::TerminateOrphan,
            WorkerPhase::Terminating => Step::Terminate,
            WorkerPhase::Terminated => Step::CleanUp,
        }
    }

    /// The sync found that the pod has run to its end.
    pub fn ran_to_end(&mut self) {
        if self.phase == WorkerPhase::Syncing {
            self.termination_requested = true;
            self.shorten_grace();
            self.phase = WorkerPhase::Terminating;
        }
    }

    /// Containers are stopped.
    pub fn stopped(&mut self) {
        if self.phase == WorkerPhase::Terminating {
            self.phase = if self.pod.is_none() { WorkerPhase::Finished } else { WorkerPhase::Terminated };
        }
    }

    /// Volumes and cgroup are gone.
    pub fn cleaned(&mut self) {
        if self.phase == WorkerPhase::Terminated {
            self.phase = WorkerPhase::Finished;
        }
    }
}

#[cfg(test)]
mod tests;
