//! Phase of a pod from its container statuses (pod-lifecycle 9.3).

use model::core::{Container, ContainerStateTerminated, ContainerStatus, Pod};
use model::{pod, restart};

use crate::containers::{ended, is_running, is_waiting, last_end};
use crate::reasons::{self, pod_phase};

#[cfg(test)]
mod tests;

/// How many containers are in which state.
#[derive(Default)]
struct Counts {
    /// The gate RestartAllContainersOnContainerExits.
    restart_all: bool,
    pending_init: u32,
    pending_sidecars: u32,
    /// A plain init container failed and may not run again.
    init_failed_for_good: bool,
    unknown: u32,
    running: u32,
    waiting: u32,
    stopped: u32,
    succeeded: u32,
    /// Stopped regular containers that the restart rules start again.
    restartable: u32,
}

/// The phase that the statuses of init and regular containers add up to, before stickiness (pod-lifecycle 9.4).
///
/// `restart_all`: the gate RestartAllContainersOnContainerExits. `is_terminal`: no container will be started any more. `has_current_regular`: some regular container exists in the
/// current sandbox.
pub(crate) fn phase(
    pod: &Pod,
    statuses: &[&ContainerStatus],
    restart_all: bool,
    is_terminal: bool,
    has_current_regular: bool,
) -> &'static str {
    let status_of = |container: &Container| statuses.iter().copied().find(|s| s.name == container.name);
    let mut counts = Counts { restart_all, ..Counts::default() };
    for container in pod::init_containers(pod) {
        let status = status_of(container);
        if pod::is_sidecar(container) {
            counts.add_sidecar(status);
        } else {
            counts.add_init(pod, container, status);
        }
    }
    for container in pod::regular_containers(pod) {
        counts.add_regular(pod, container, status_of(container));
    }
    counts.decide(is_terminal && !pod::is_static(pod), has_current_regular)
}

impl Counts {
    fn add_init(&mut self, pod: &Pod, container: &Container, status: Option<&ContainerStatus>) {
        let Some(status) = status else {
            self.pending_init += 1;
            return;
        };
        let end = ended(status).or_else(|| last_end(status).filter(|_| is_waiting(status)));
        match end {
            Some(end) if end.exit_code != 0 => self.init_failed_for_good |= !self.runs_again(pod, container, end),
            Some(_) => {}
            None => self.pending_init += 1,
        }
    }

    fn add_sidecar(&mut self, status: Option<&ContainerStatus>) {
        let Some(status) = status else {
            self.unknown += 1;
            return;
        };
        if is_running(status) {
            self.running += 1;
            self.pending_sidecars += u32::from(status.started != Some(true));
        } else if is_waiting(status) {
            if last_end(status).is_none() {
                self.pending_sidecars += 1;
                self.waiting += 1;
            }
        } else if ended(status).is_none() {
            self.pending_sidecars += 1;
            self.unknown += 1;
        }
    }

    fn add_regular(&mut self, pod: &Pod, container: &Container, status: Option<&ContainerStatus>) {
        let Some(status) = status else {
            self.unknown += 1;
            return;
        };
        let end = if is_running(status) {
            self.running += 1;
            return;
        } else if let Some(end) = ended(status) {
            self.succeeded += u32::from(end.exit_code == 0);
            end
        } else if !is_waiting(status) {
            self.unknown += 1;
            return;
        } else if let Some(end) = last_end(status) {
            end
        } else {
            self.waiting += 1;
            return;
        };
        self.stopped += 1;
        self.restartable += u32::from(self.runs_again(pod, container, end));
    }

    /// By its rules, or because it was removed with all others to be started anew.
    fn runs_again(&self, pod: &Pod, container: &Container, end: &ContainerStateTerminated) -> bool {
        let with_all = end.reason.as_deref() == Some(reasons::RESTARTING_ALL_CONTAINERS);
        (self.restart_all && with_all) || restart::restarts_after_exit(pod, container, end.exit_code, self.restart_all)
    }

    /// The rows of 9.3, first match wins.
    fn decide(&self, ends_for_good: bool, has_current_regular: bool) -> &'static str {
        let all_succeeded = self.stopped == self.succeeded;
        let only_stopped = self.running == 0 && self.stopped > 0 && self.unknown == 0;
        if self.init_failed_for_good {
            pod_phase::FAILED
        } else if self.pending_init > 0 || (self.pending_sidecars > 0 && !has_current_regular) || self.waiting > 0 {
            pod_phase::PENDING
        } else if self.running > 0 && self.unknown == 0 {
            pod_phase::RUNNING
        } else if !only_stopped {
            pod_phase::PENDING
        } else if ends_for_good {
            if all_succeeded { pod_phase::SUCCEEDED } else { pod_phase::FAILED }
        } else if self.restartable > 0 {
            pod_phase::RUNNING
        } else if all_succeeded {
            pod_phase::SUCCEEDED
        } else {
            pod_phase::FAILED
        }
    }
}
