//! What a verdict is made from: what the boards of a node say about one pod.

use model::Timestamp;
use model::core::{ContainerStatus, Pod, PodStatus};
use model::history::PodHistory;

/// All that is known of one pod now. What nobody could tell is left out, and the verdict stands on the rest.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The clock.
    pub now: Timestamp,
    /// The pod as its source has it.
    pub pod: &'a Pod,
    /// Its status.
    pub status: Option<&'a PodStatus>,
    /// It comes from the API server, and its object has to go there in the end.
    pub from_api: bool,
    /// Admission refused it: reason and message.
    pub rejected: Option<(&'a str, &'a str)>,
    /// Admission has not decided, or it waits for others to make room.
    pub undecided: bool,
    /// No source wants it any more.
    pub unwanted: bool,
    /// Its worker.
    pub worker: Option<WorkerFacts<'a>>,
    /// What happened to it.
    pub history: Option<&'a PodHistory>,
    /// Its volumes; `Err`: nobody told in time.
    pub volumes: Result<&'a [VolumeFacts], &'a str>,
    /// Pulls of the node.
    pub pulls: Pulls<'a>,
    /// The runtime.
    pub runtime: RuntimeFacts<'a>,
    /// Its probes.
    pub probes: &'a [Probes],
    /// Conditions of the node that are pressure.
    pub pressure: &'a [String],
    /// The API server; `None`: there is none for this node.
    pub api: Option<ApiFacts<'a>>,
}

/// Where a worker is with its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerStage {
    /// Waits for another pod of the same name.
    Waiting,
    /// Keeps it running.
    Syncing,
    /// Stops it.
    Terminating,
    /// Gives back what it had.
    Terminated,
    /// Is done.
    Finished,
}

/// The worker of a pod.
#[derive(Clone, Copy, Debug)]
pub struct WorkerFacts<'a> {
    /// Where it is.
    pub stage: WorkerStage,
    /// The end was asked for.
    pub stop_requested: bool,
    /// Why, when somebody said so: reason and message.
    pub stop_reason: Option<(&'a str, &'a str)>,
    /// Seconds that containers have to end, when somebody said so.
    pub grace_s: Option<i64>,
    /// End of the latest step; 0: none yet.
    pub synced_at: Timestamp,
    /// Why the latest step failed.
    pub error: Option<&'a str>,
}

/// One volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeFacts {
    /// Name in the pod.
    pub name: String,
    /// `csi`, `configMap`, ...; empty: not known yet.
    pub kind: String,
    /// Claim.
    pub claim: String,
    /// CSI driver.
    pub driver: String,
    /// The pod has it.
    pub mounted: bool,
    /// Since when it is as it is.
    pub since: Option<Timestamp>,
    /// Why the latest try failed.
    pub error: Option<String>,
    /// The call that is under way, and since when.
    pub call: Option<(String, Timestamp)>,
}

/// Pulls of the node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pulls<'a> {
    /// Images that are being pulled.
    pub pulling: &'a [String],
    /// Requests that wait for a slot.
    pub queued: usize,
}

/// The runtime.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeFacts<'a> {
    /// It answers and says that it is ready.
    pub ready: bool,
    /// What is known of it may be outdated.
    pub stale: bool,
    /// Why it is not ready.
    pub error: Option<&'a str>,
    /// Why the network is not ready.
    pub network: Option<&'a str>,
}

/// A probe that does not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probes {
    /// Container.
    pub container: String,
    /// `Startup`, `Readiness`, `Liveness`.
    pub kind: &'static str,
    /// It failed often enough; else it has not succeeded yet.
    pub failed: bool,
    /// What it answered, if that is known.
    pub message: Option<String>,
}

/// The API server.
#[derive(Clone, Copy, Debug)]
pub struct ApiFacts<'a> {
    /// A full set of pods has come from it.
    pub synced: bool,
    /// Why it does not answer.
    pub error: Option<&'a str>,
}

impl Facts<'_> {
    /// Statuses of init containers and sidecars.
    pub(crate) fn init(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.status.into_iter().flat_map(|s| s.init_container_statuses.iter().flatten())
    }

    /// Statuses of all containers, in the order in which they start.
    pub(crate) fn containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        let regular = self.status.into_iter().flat_map(|s| s.container_statuses.iter().flatten());
        let ephemeral = self.status.into_iter().flat_map(|s| s.ephemeral_container_statuses.iter().flatten());
        self.init().chain(regular).chain(ephemeral)
    }

    /// A condition of the pod: whether it holds, and since when that is so.
    pub(crate) fn condition(&self, kind: &str) -> Option<(bool, Option<Timestamp>)> {
        let all = self.status?.conditions.as_ref()?;
        let found = all.iter().find(|c| c.type_ == kind)?;
        Some((found.status == "True", found.last_transition_time.as_ref().map(Timestamp::from_api)))
    }

    pub(crate) fn phase(&self) -> &str {
        self.status.and_then(|s| s.phase.as_deref()).unwrap_or_default()
    }

    pub(crate) fn started_at(&self) -> Option<Timestamp> {
        self.status?.start_time.as_ref().map(Timestamp::from_api)
    }

    /// Why the API server does not answer, where that is so.
    pub(crate) fn api_away(&self) -> Option<&str> {
        let api = self.api?;
        match api.error {
            Some(error) => Some(error),
            None => (!api.synced).then_some("it has not been heard since the daemon started"),
        }
    }
}
