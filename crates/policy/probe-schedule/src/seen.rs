//! What a probe's worker sees of its container: a view of the status that the node last published.

use model::core::{Container, ContainerStatus, Pod, PodStatus};
use model::ids::bare_id;
use model::probe::{ProbeKind, ProbeVerdict};
use model::{ContainerId, Timestamp, pod, restart};

/// State of the container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// Not started yet.
    Waiting,
    /// Running since.
    Running {
        /// Start.
        since: Timestamp,
    },
    /// Ended.
    Terminated {
        /// Restart rules say that it runs again.
        restarts: bool,
    },
}

/// The container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenContainer {
    /// Id of the instance, without the runtime's prefix.
    pub id: ContainerId,
    /// State.
    pub life: Life,
    /// `started` of its status.
    pub started: bool,
}

/// The pod, as far as one probe cares.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Phase is Succeeded or Failed.
    pub over: bool,
    /// The container; `None`: no status of it, or no id yet.
    pub container: Option<SeenContainer>,
}

impl Seen {
    /// Picks the container out of a status.
    #[must_use]
    pub fn of(pod: &Pod, container: &Container, status: &PodStatus) -> Self {
        let found = status_of(status, &container.name);
        Self {
            over: pod::is_terminal_phase(status.phase.as_deref()),
            container: found.and_then(|s| seen_container(pod, container, s)),
        }
    }
}

/// What the API server has been told of an instance: an earlier daemon may have been killed before its verdict was on disk, and
/// a pod that was ready stays so until a probe says otherwise. A probe that had not succeeded says nothing: it begins anew.
#[must_use]
pub fn told(pod: &Pod, name: &str, instance: &ContainerId, kind: ProbeKind) -> Option<ProbeVerdict> {
    let status = status_of(pod.status.as_ref()?, name).filter(|s| instance_of(s) == Some(instance.as_str()))?;
    let has_succeeded = match kind {
        ProbeKind::Startup => status.started == Some(true),
        ProbeKind::Readiness => status.ready,
        ProbeKind::Liveness => false,
    };
    has_succeeded.then_some(ProbeVerdict::Success)
}

fn status_of<'a>(status: &'a PodStatus, name: &str) -> Option<&'a ContainerStatus> {
    status.container_statuses.iter().chain(&status.init_container_statuses).flatten().find(|s| s.name == name)
}

/// The id of the instance; `None`: there is none yet.
fn instance_of(status: &ContainerStatus) -> Option<&str> {
    status.container_id.as_deref().map(bare_id).filter(|id| !id.is_empty())
}

fn seen_container(pod: &Pod, container: &Container, status: &ContainerStatus) -> Option<SeenContainer> {
    let id = instance_of(status)?;
    let state = status.state.as_ref();
    let life = if let Some(running) = state.and_then(|s| s.running.as_ref()) {
        Life::Running { since: running.started_at.as_ref().map_or(Timestamp::ZERO, Timestamp::from_api) }
    } else if let Some(ended) = state.and_then(|s| s.terminated.as_ref()) {
        let restarts = pod::init_containers(pod).iter().any(|c| c.name == container.name && pod::is_sidecar(c))
            || restart::restarts_after_exit(pod, container, ended.exit_code, true)
            || restart::may_restart_all(pod);
        Life::Terminated { restarts }
    } else {
        Life::Waiting
    };
    Some(SeenContainer { id: id.into(), life, started: status.started.unwrap_or(false) })
}
