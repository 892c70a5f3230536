//! Container statuses (pod-lifecycle 9.2).

use std::collections::BTreeMap;

use model::core::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    ContainerUser, LinuxContainerUser, Pod, PodStatus, VolumeMount, VolumeMountStatus,
};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use model::k8s_openapi::jiff;
use model::runtime::{ContainerObservation, ContainerState as InRuntime};
use model::{Timestamp, pod, restart};

use crate::input::StatusInput;
use crate::restart_all::restarts_all;
use crate::{reasons, resources};

#[cfg(test)]
mod tests;

/// The three lists of a pod status.
pub(crate) struct Lists {
    pub(crate) init: Vec<ContainerStatus>,
    pub(crate) regular: Vec<ContainerStatus>,
    pub(crate) ephemeral: Vec<ContainerStatus>,
}

/// All container statuses: init in spec order, the others by name.
pub(crate) fn container_statuses(input: &StatusInput<'_>, base: &PodStatus) -> Lists {
    let p = input.pod;
    let maker = Maker::new(input, base);
    let ephemeral: Vec<Container> = pod::ephemeral_containers(p).map(|(c, _)| c).collect();
    let by_name = |mut list: Vec<ContainerStatus>| {
        list.sort_by(|a, b| a.name.cmp(&b.name));
        list
    };
    Lists {
        init: maker.list(pod::init_containers(p), base.init_container_statuses.as_deref()),
        regular: by_name(maker.list(pod::regular_containers(p), base.container_statuses.as_deref())),
        ephemeral: by_name(maker.list(&ephemeral, base.ephemeral_container_statuses.as_deref())),
    }
}

/// A state with only `waiting` set.
pub(crate) fn waiting(reason: &str, message: &str) -> ContainerState {
    let some = |s: &str| (!s.is_empty()).then(|| s.to_owned());
    let waiting = ContainerStateWaiting { reason: some(reason), message: some(message) };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

/// A state with only `terminated` set, of a container of which the end was not seen.
pub(crate) fn terminated_unseen(reason: &str, message: &str, exit_code: i32) -> ContainerState {
    let terminated = ContainerStateTerminated {
        exit_code,
        reason: Some(reason.to_owned()),
        message: (!message.is_empty()).then(|| message.to_owned()),
        ..ContainerStateTerminated::default()
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}

/// How the last run of a container ended, if the status knows.
pub(crate) fn last_end(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.last_state.as_ref().and_then(|s| s.terminated.as_ref())
}

/// The `terminated` part of the current state.
pub(crate) fn ended(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.state.as_ref().and_then(|s| s.terminated.as_ref())
}

/// Whether the current state is `running`.
pub(crate) fn is_running(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|s| s.running.is_some())
}

/// Whether the current state is `waiting`.
pub(crate) fn is_waiting(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|s| s.waiting.is_some())
}

/// The runtime's id of a container without the `<runtime>://` prefix; empty when there is none.
pub(crate) fn bare_id(status: &ContainerStatus) -> &str {
    model::ids::bare_id(status.container_id.as_deref().unwrap_or_default())
}

/// Cut to seconds. 0 stays the epoch: a container that never started shows that as its start.
pub(crate) fn whole_seconds(at: Timestamp) -> Time {
    at.to_api().unwrap_or(Time(jiff::Timestamp::UNIX_EPOCH))
}

struct Maker<'a> {
    input: &'a StatusInput<'a>,
    default_reason: &'static str,
    deleting: bool,
    restarting_all: bool,
    any_regular_seen: bool,
}

impl<'a> Maker<'a> {
    fn new(input: &'a StatusInput<'a>, base: &PodStatus) -> Self {
        let p = input.pod;
        let has_init = !pod::init_containers(p).is_empty();
        let seen = |c: &Container| input.observed.container(&c.name).is_some();
        Self {
            input,
            default_reason: if has_init { reasons::POD_INITIALIZING } else { reasons::CONTAINER_CREATING },
            deleting: p.metadata.deletion_timestamp.is_some(),
            restarting_all: restarts_all(input, base),
            any_regular_seen: pod::regular_containers(p).iter().any(seen),
        }
    }

    fn list(&self, containers: &[Container], base: Option<&[ContainerStatus]>) -> Vec<ContainerStatus> {
        let base: BTreeMap<&str, &ContainerStatus> =
            base.unwrap_or_default().iter().map(|s| (s.name.as_str(), s)).collect();
        containers.iter().map(|c| self.one(c, base.get(c.name.as_str()).copied())).collect()
    }

    fn one(&self, container: &Container, base: Option<&ContainerStatus>) -> ContainerStatus {
        let status = match self.input.observed.container(&container.name) {
            Some(newest) => self.present(container, newest, base),
            None => self.missing(container, base),
        };
        let status = self.overlay(container, status);
        self.treat_lost_init(container, status)
    }

    fn default_status(&self, container: &Container) -> ContainerStatus {
        let mounts = container.volume_mounts.as_deref().unwrap_or_default();
        let mounts: Vec<_> = mounts.iter().map(|m| mount_status(m, self.input.recursive_read_only)).collect();
        ContainerStatus {
            name: container.name.clone(),
            image: container.image.clone().unwrap_or_default(),
            state: Some(waiting(self.default_reason, "")),
            last_state: Some(ContainerState::default()),
            volume_mounts: (!mounts.is_empty()).then_some(mounts),
            ..ContainerStatus::default()
        }
    }

    /// The runtime knows no instance of this container.
    fn missing(&self, container: &Container, base: Option<&ContainerStatus>) -> ContainerStatus {
        let mut status = self.default_status(container);
        let Some(base) = base else { return status };
        status.restart_count = base.restart_count;
        status.last_state = Some(base.last_state.clone().unwrap_or_default());
        let (reason, why) = (reasons::RESTARTING_ALL_CONTAINERS, reasons::REMOVED_WITH_ALL);
        if waiting_reason(base) == reason {
            // COMPAT(kubelet): it goes back to the default reason with its next sync, also when nothing has been started.
            status.state = base.state.clone();
            return status;
        }
        if self.restarting_all {
            if !is_waiting(base) {
                status.state = Some(waiting(reason, why));
                status.last_state = Some(terminated_unseen(reason, why, reasons::UNKNOWN_EXIT_CODE));
                status.restart_count += 1;
            }
            return status;
        }
        if ended(base).is_some() {
            let mut status = base.clone();
            status.last_state.get_or_insert_default();
            return status;
        }
        if is_running(base) && last_end(base).is_none() {
            // Without an end on record the waiting state would throw the pod back to Pending.
            let code = reasons::UNKNOWN_EXIT_CODE;
            status.last_state =
                Some(terminated_unseen(reasons::CONTAINER_STATUS_UNKNOWN, reasons::GONE_WHEN_DELETED, code));
            status.restart_count += i32::from(!self.deleting);
        }
        status
    }

    /// The runtime knows at least one instance.
    fn present(
        &self,
        container: &Container,
        newest: &ContainerObservation,
        base: Option<&ContainerStatus>,
    ) -> ContainerStatus {
        let mut status = self.default_status(container);
        status.image = newest.image.clone();
        status.image_id = newest.image_ref.clone();
        status.container_id = Some(self.prefixed(newest));
        let count = i32::try_from(newest.restart_count).unwrap_or(i32::MAX);
        // A runtime that lost annotations must not make the count go back (since 1.35).
        status.restart_count = base.map_or(count, |b| count.max(b.restart_count));
        if let Some(base) = base.filter(|b| newest.state == InRuntime::Unknown && is_running(b)) {
            status.restart_count = status.restart_count.max(base.restart_count.saturating_add(1));
        }
        // Instances that were removed to restart all may have taken the count with them.
        let again = |b: &&ContainerStatus| newest.state == InRuntime::Running && ended(b).is_some();
        if let Some(base) = base.filter(again).filter(|b| self.input.restart_all && b.restart_count >= count) {
            status.restart_count = base.restart_count.saturating_add(1);
        }
        if let Some(mounts) = base.and_then(|b| b.volume_mounts.clone()) {
            status.volume_mounts = Some(mounts);
        }
        status.state = Some(self.state_of(newest, base));
        status.last_state = Some(self.last_state(container, newest, base));
        let figures = resources::of_container(container, newest, self.input.resize.actuated.get(&container.name));
        status.resources = Some(figures.in_force);
        status.allocated_resources = figures.allocated;
        status.user = newest.user.as_ref().map(|(uid, gid, groups)| ContainerUser {
            linux: Some(LinuxContainerUser { uid: *uid, gid: *gid, supplemental_groups: Some(groups.clone()) }),
        });
        status
    }

    fn state_of(&self, seen: &ContainerObservation, base: Option<&ContainerStatus>) -> ContainerState {
        match seen.state {
            InRuntime::Running => ContainerState {
                running: Some(ContainerStateRunning { started_at: Some(whole_seconds(seen.started_at)) }),
                ..ContainerState::default()
            },
            InRuntime::Created => waiting("", ""),
            InRuntime::Exited => self.terminated(seen),
            InRuntime::Unknown => match base {
                Some(b) if is_running(b) => terminated_unseen(
                    if self.restarting_all {
                        reasons::RESTARTING_ALL_CONTAINERS
                    } else {
                        reasons::CONTAINER_STATUS_UNKNOWN
                    },
                    reasons::GONE_WHEN_TERMINATED,
                    reasons::UNKNOWN_EXIT_CODE,
                ),
                // The same verdict was given before: keep it, else the state would flap on the next sync.
                Some(b) if bare_id(b) == seen.id.as_str() && ended(b).is_some() => b.state.clone().unwrap_or_default(),
                _ => waiting("", ""),
            },
        }
    }

    /// From the newest older instance that ended, else from what was known before.
    fn last_state(
        &self,
        container: &Container,
        newest: &ContainerObservation,
        base: Option<&ContainerStatus>,
    ) -> ContainerState {
        if let Some(base) = base.filter(|b| newest.state == InRuntime::Unknown && bare_id(b) == newest.id.as_str())
            && last_end(base).is_some()
        {
            // The verdict on this instance, given while it was last seen to run, may have moved here.
            return base.last_state.clone().unwrap_or_default();
        }
        let older = self.input.observed.instances(&container.name).skip(1);
        let mut ends = older.map(|o| match o.state {
            InRuntime::Exited => self.terminated(o),
            _ => ContainerState::default(),
        });
        if let Some(end) = ends.find(|s| s.terminated.is_some()) {
            return end;
        }
        let Some(base) = base else { return ContainerState::default() };
        let replaced = bare_id(base) != newest.id.as_str();
        match &base.state {
            Some(state) if replaced && state.terminated.is_some() => state.clone(),
            _ => base.last_state.clone().unwrap_or_default(),
        }
    }

    fn terminated(&self, seen: &ContainerObservation) -> ContainerState {
        let some = |s: &str| (!s.is_empty()).then(|| s.to_owned());
        let terminated = ContainerStateTerminated {
            exit_code: seen.exit_code,
            reason: some(&seen.reason),
            message: some(&seen.message),
            started_at: Some(whole_seconds(seen.started_at)),
            finished_at: Some(whole_seconds(seen.finished_at)),
            container_id: Some(self.prefixed(seen)),
            signal: None,
        };
        ContainerState { terminated: Some(terminated), ..ContainerState::default() }
    }

    fn prefixed(&self, seen: &ContainerObservation) -> String {
        format!("{}://{}", self.input.runtime_name, seen.id)
    }

    /// A container that the next sync would start shows why that did not work lately.
    fn overlay(&self, container: &Container, mut status: ContainerStatus) -> ContainerStatus {
        let Some(why) = self.input.reasons.get(&container.name) else { return status };
        let seen = self.input.observed.container(&container.name);
        let done = is_plain_init(self.input.pod, &container.name)
            && seen.is_some_and(|o| o.state == InRuntime::Exited && o.exit_code == 0);
        let starts = restart::should_restart(self.input.pod, container, self.input.observed, self.input.restart_all);
        if done || !starts {
            return status;
        }
        if ended(&status).is_some() {
            let end = status.state.take();
            if seen.is_none() {
                // Nothing of the removed instance but its end is kept.
                status = ContainerStatus { restart_count: status.restart_count, ..self.default_status(container) };
            }
            status.last_state = end;
        }
        status.state = Some(waiting(&why.reason, &why.message));
        status
    }

    /// Init containers may be removed once the pod is initialised; that must not look as if they never ran.
    fn treat_lost_init(&self, container: &Container, mut status: ContainerStatus) -> ContainerStatus {
        let lost = self.any_regular_seen
            && !self.restarting_all
            && is_plain_init(self.input.pod, &container.name)
            && self.input.observed.container(&container.name).is_none()
            && waiting_reason(&status) == self.default_reason;
        if lost {
            status.state = Some(terminated_unseen("Completed", reasons::LOST_INIT, 0));
        }
        status
    }
}

fn waiting_reason(status: &ContainerStatus) -> &str {
    let waiting = status.state.as_ref().and_then(|s| s.waiting.as_ref());
    waiting.and_then(|w| w.reason.as_deref()).unwrap_or_default()
}

/// Whether the name is that of an init container that is no sidecar.
pub(crate) fn is_plain_init(p: &Pod, name: &str) -> bool {
    pod::init_containers(p).iter().any(|c| c.name == name && !pod::is_sidecar(c))
}

fn mount_status(mount: &VolumeMount, recursive_read_only: bool) -> VolumeMountStatus {
    let read_only = mount.read_only.unwrap_or(false);
    let recursive = match mount.recursive_read_only.as_deref() {
        Some("Enabled") => "Enabled",
        Some("IfPossible") if recursive_read_only => "Enabled",
        _ => "Disabled",
    };
    VolumeMountStatus {
        name: mount.name.clone(),
        mount_path: mount.mount_path.clone(),
        read_only: read_only.then_some(true),
        recursive_read_only: read_only.then(|| recursive.to_owned()),
        ..VolumeMountStatus::default()
    }
}
