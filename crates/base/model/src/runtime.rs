//! What the runtime says is there: the observed half of every decision.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{ContainerId, PodUid, SandboxId, Timestamp};

/// State of a container as the CRI names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum ContainerState {
    /// Created, never started (or start failed).
    Created,
    /// Running.
    Running,
    /// Exited.
    Exited,
    /// The runtime does not know, or answered a value that we do not know.
    Unknown,
}
crate::tolerant!(ContainerState, else ContainerState::Unknown);

/// One mount that the runtime reports for a container.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MountPoint {
    /// Path inside the container.
    pub container_path: String,
    /// Path on the host.
    pub host_path: String,
}

/// Resources that the runtime reports as in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RuntimeResources {
    /// cpu.shares.
    pub cpu_shares: i64,
    /// CFS quota in microseconds per period; <= 0: none.
    pub cpu_quota_us: i64,
    /// CFS period in microseconds.
    pub cpu_period_us: i64,
    /// Memory limit in bytes; 0: none.
    pub memory_limit_bytes: i64,
}

/// One container instance, whatever its state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ContainerObservation {
    /// Runtime id.
    pub id: ContainerId,
    /// Container name from the label `io.kubernetes.container.name`.
    pub name: String,
    /// Sandbox that it belongs to.
    pub sandbox: SandboxId,
    /// State.
    pub state: ContainerState,
    /// Set for every state.
    pub created_at: Timestamp,
    /// 0 until started.
    pub started_at: Timestamp,
    /// 0 until exited.
    pub finished_at: Timestamp,
    /// Exit code; 0 unless exited.
    pub exit_code: i32,
    /// Image as the runtime reports it.
    pub image: String,
    /// Image reference (repo digest form where known).
    pub image_ref: String,
    /// Runtime reason (`Completed`, `Error`, `OOMKilled` ...), may be empty.
    pub reason: String,
    /// Termination message already joined by the runtime-client (file, log tail, CRI message), may be empty.
    pub message: String,
    /// Restart count from the annotation, or the CRI attempt when that is absent.
    pub restart_count: u32,
    /// `io.kubernetes.container.hash`, parsed as base 16; `None` when absent or unparsable.
    pub hash: Option<u64>,
    /// Annotations verbatim (preStop handler, grace, termination message path and policy are in here).
    pub annotations: Arc<BTreeMap<String, String>>,
    /// Mounts that the runtime reports.
    pub mounts: Arc<[MountPoint]>,
    /// Absolute log path when the runtime reports it.
    pub log_path: String,
    /// Resources in force, when reported.
    pub resources: Option<RuntimeResources>,
    /// uid, gid and groups of the first process, when reported.
    pub user: Option<(i64, i64, Vec<i64>)>,
}

/// One sandbox of a pod.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SandboxObservation {
    /// Runtime id.
    pub id: SandboxId,
    /// CRI attempt.
    pub attempt: u32,
    /// READY in CRI terms.
    pub ready: bool,
    /// Creation time.
    pub created_at: Timestamp,
    /// Whether the sandbox shares the host's network namespace. `None` when the runtime did not say.
    pub host_network: Option<bool>,
    /// `Some` when the status carried a network message: primary IP first (may be empty strings).
    pub ips: Option<Vec<String>>,
    /// Runtime handler that the sandbox uses.
    pub runtime_handler: String,
    /// Source that its pod came from, as its annotation says; empty: it does not.
    #[serde(default)]
    pub config_source: String,
}

/// Everything the runtime knows of one pod (a kubelet's `PodStatus`).
///
/// Invariants: `sandboxes` are newest first (attempt, then creation, then id); `containers` are newest first by
/// `created_at` and of *all* sandboxes; "the status of container X" is the first entry of that name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PodObservation {
    /// Pod UID from the labels / metadata.
    pub uid: PodUid,
    /// Pod name.
    pub name: String,
    /// Pod namespace.
    pub namespace: String,
    /// Sandboxes, newest first.
    pub sandboxes: Vec<SandboxObservation>,
    /// Containers of all sandboxes, newest first.
    pub containers: Vec<ContainerObservation>,
    /// Parsed IPs of the newest sandbox while it is ready, else those kept from before.
    pub ips: Vec<IpAddr>,
}

impl ContainerObservation {
    /// A container of which the runtime tells no more than this.
    #[must_use]
    pub fn new(
        id: impl Into<ContainerId>,
        name: impl Into<String>,
        sandbox: impl Into<SandboxId>,
        state: ContainerState,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            sandbox: sandbox.into(),
            state,
            created_at: Timestamp::ZERO,
            started_at: Timestamp::ZERO,
            finished_at: Timestamp::ZERO,
            exit_code: 0,
            image: String::new(),
            image_ref: String::new(),
            reason: String::new(),
            message: String::new(),
            restart_count: 0,
            hash: None,
            annotations: Arc::default(),
            mounts: Arc::from([]),
            log_path: String::new(),
            resources: None,
            user: None,
        }
    }
}

impl SandboxObservation {
    /// A sandbox of which the runtime tells no more than this.
    #[must_use]
    pub fn new(id: impl Into<SandboxId>, attempt: u32, ready: bool) -> Self {
        Self {
            id: id.into(),
            attempt,
            ready,
            created_at: Timestamp::ZERO,
            host_network: None,
            ips: None,
            runtime_handler: String::new(),
            config_source: String::new(),
        }
    }
}

impl PodObservation {
    /// A pod of which the runtime knows nothing.
    #[must_use]
    pub fn empty(uid: PodUid, namespace: &str, name: &str) -> Self {
        Self {
            uid,
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            sandboxes: Vec::new(),
            containers: Vec::new(),
            ips: Vec::new(),
        }
    }

    /// `<name>_<namespace>`.
    #[must_use]
    pub fn full_name(&self) -> String {
        crate::pod::full_name_of(&self.name, &self.namespace)
    }

    /// The newest instance of the container called `name`.
    #[must_use]
    pub fn container(&self, name: &str) -> Option<&ContainerObservation> {
        self.containers.iter().find(|c| c.name == name)
    }

    /// All instances of the container called `name`, newest first.
    pub fn instances<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a ContainerObservation> + 'a {
        self.containers.iter().filter(move |c| c.name == name)
    }

    /// Newest sandbox.
    #[must_use]
    pub fn sandbox(&self) -> Option<&SandboxObservation> {
        self.sandboxes.first()
    }

    /// Containers of the newest sandbox if that one is ready.
    pub fn active_containers(&self) -> impl Iterator<Item = &ContainerObservation> {
        let active = self.sandboxes.first().filter(|s| s.ready).map(|s| s.id.clone());
        self.containers.iter().filter(move |c| active.as_ref() == Some(&c.sandbox))
    }

    /// Whether any container runs.
    #[must_use]
    pub fn any_running(&self) -> bool {
        self.containers.iter().any(|c| c.state == ContainerState::Running)
    }

    /// Whether any container runs or any sandbox is ready.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.any_running() || self.sandboxes.iter().any(|s| s.ready)
    }

    /// Brings `sandboxes` and `containers` into the order that the invariants ask for.
    pub fn normalise(&mut self) {
        self.sandboxes
            .sort_by(|a, b| b.attempt.cmp(&a.attempt).then(b.created_at.cmp(&a.created_at)).then(b.id.cmp(&a.id)));
        self.containers.sort_by(|a, b| b.created_at.cmp(&a.created_at).then(b.id.cmp(&a.id)));
        self.put_instances_in_order();
    }

    /// A clock that was set back gives a younger instance of a container an older time: among those of one name counts first how often
    /// the container was restarted, which only grows while an older instance is there.
    fn put_instances_in_order(&mut self) {
        let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, c) in self.containers.iter().enumerate() {
            places.entry(&c.name).or_default().push(place);
        }
        let mut order: Vec<usize> = (0..self.containers.len()).collect();
        for places in places.into_values().filter(|places| places.len() > 1) {
            let mut sorted = places.clone();
            // Where both are alike the time decides, as before.
            sorted.sort_by_key(|place| std::cmp::Reverse(self.containers[*place].restart_count));
            for (place, from) in places.into_iter().zip(sorted) {
                order[place] = from;
            }
        }
        if !order.is_sorted() {
            self.containers = order.into_iter().map(|from| self.containers[from].clone()).collect();
        }
    }
}

/// Which source tells of container changes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum EventTier {
    /// CRI `GetContainerEvents`: events carry whole statuses.
    CriStream,
    /// containerd's own event service: ids only.
    Containerd,
    /// The runtime has no events that we can read: the relist alone.
    #[default]
    Relist,
}
crate::tolerant!(EventTier, else EventTier::Relist);

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(id: &str, name: &str, restarts: u32, seconds: i64) -> ContainerObservation {
        ContainerObservation {
            restart_count: restarts,
            created_at: Timestamp::from_secs(seconds),
            ..ContainerObservation::new(id, name, "s", ContainerState::Exited)
        }
    }

    fn order(containers: &[&ContainerObservation]) -> Vec<String> {
        let mut pod = PodObservation::empty("u".into(), "ns", "p");
        pod.containers = containers.iter().map(|c| (*c).clone()).collect();
        pod.normalise();
        pod.containers.iter().map(|c| c.id.to_string()).collect()
    }

    #[test]
    fn the_newest_instance_comes_first_also_when_the_clock_was_set_back() {
        let (a0, b0) = (instance("a0", "a", 0, 5000), instance("b0", "b", 0, 5001));
        let (later, set_back) = (instance("a1", "a", 1, 5002), instance("a1", "a", 1, 1400));
        assert_eq!(order(&[&a0, &b0, &later]), ["a1", "b0", "a0"], "by time, where that tells the truth");
        assert_eq!(order(&[&a0, &b0, &set_back]), ["b0", "a1", "a0"]);
        assert_eq!(order(&[&set_back, &a0, &b0]), ["b0", "a1", "a0"]);
        let (older, younger) = (instance("c", "c", 1, 1), instance("d", "c", 1, 2));
        assert_eq!(order(&[&older, &younger]), ["d", "c"], "where both are alike the time decides");
    }
}
