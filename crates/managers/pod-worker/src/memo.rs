//! What a worker remembers between steps, and the part of it that the journal keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use contract::volume::MountedVolumes;
use model::allocation::{Amounts, ResizeInProgress};
use model::core::{Pod, PodStatus};
use model::fnv::fnv1a_64;
use model::json::ToJson as _;
use model::pod;
use model::runtime::{ContainerState, PodObservation};
use model::{ContainerId, PodUid, Timestamp};
use pod_plan::CrashBackoff;
use pod_status::WaitingReason;
use ports::journal::{Journal, JournalError};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// A worker's memory. Cheap to clone: a step works on a copy and hands it back.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Memo {
    /// Why containers could not be started lately (the reason cache).
    pub(crate) reasons: BTreeMap<String, WaitingReason>,
    /// Kept in the journal.
    pub(crate) record: Record,
    /// The journal has this record.
    pub(crate) saved: bool,
    /// Time that went into images, for metrics.
    pub(crate) pulls: Duration,
    /// Containers last seen running, for metrics.
    pub(crate) alive: BTreeSet<ContainerId>,
    /// Since when instances are known as ended, by a clock that nobody sets.
    pub(crate) ends: BTreeMap<ContainerId, Instant>,
    /// A manager died over an ask of the last step.
    pub(crate) lost: bool,
    /// The pod as the last step knew it.
    pub(crate) acted_on: Option<Arc<Pod>>,
    /// A resize may not have been carried out that an earlier daemon granted.
    pub(crate) is_behind: bool,
    /// A resize that is granted and not carried out yet.
    pub(crate) resize: Option<ResizeInProgress>,
    /// What the last good step made for the pod.
    pub(crate) prepared: Option<Prepared>,
}

/// The step that follows a start at once need not make the pod's cgroup, folders and volumes once more. Later ones do: what
/// somebody took away comes back.
const PREPARED_FOR: Duration = Duration::from_secs(5);

/// Volumes without content of ours do not change with objects, labels or time: whether they are still there is looked at this often.
const DIRECTORIES_LAST: Duration = Duration::from_secs(300);

/// Cgroup, folders and volumes of a pod, as they were made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prepared {
    pub(crate) at: Instant,
    /// When volumes were last asked for.
    pub(crate) mounted_at: Instant,
    pub(crate) pod: Arc<Pod>,
    pub(crate) cgroup_parent: String,
    pub(crate) mounted: Arc<MountedVolumes>,
}

impl Prepared {
    /// Whether they serve this version of the pod too, now.
    pub(crate) fn serves(&self, pod: &Arc<Pod>, now: Instant) -> bool {
        now.duration_since(self.at) < PREPARED_FOR && self.is_of(pod)
    }

    /// Whether its volumes do, though the rest is to be made sure of.
    pub(crate) fn volumes_serve(&self, pod: &Arc<Pod>, now: Instant) -> bool {
        now.duration_since(self.mounted_at) < DIRECTORIES_LAST && has_only_directories(pod) && self.is_of(pod)
    }

    fn is_of(&self, pod: &Arc<Pod>) -> bool {
        let same = || {
            let (a, b) = (&self.pod.metadata, &pod.metadata);
            self.pod.spec == pod.spec && a.labels == b.labels && a.annotations == b.annotations
        };
        Arc::ptr_eq(&self.pod, pod) || same()
    }
}

/// Whether all volumes are directories of the pod's own or of the host, or images: a kubelet looks at such once (`RequiresRemount`).
fn has_only_directories(pod: &Pod) -> bool {
    let mut volumes = pod.spec.iter().flat_map(|s| s.volumes.iter().flatten());
    volumes.all(|v| v.empty_dir.is_some() || v.host_path.is_some() || v.image.is_some())
}

impl Memo {
    /// Notes instances that are seen as ended for the first time, and forgets those that are gone.
    pub(crate) fn note_ends(&mut self, observed: &PodObservation, now: Instant) {
        let ended = observed.containers.iter().filter(|c| c.state == ContainerState::Exited);
        let since = |id: &ContainerId| self.ends.get(id).copied().unwrap_or(now);
        self.ends = ended.map(|c| (c.id.clone(), since(&c.id))).collect();
    }

    /// How long instances have been known as ended.
    pub(crate) fn ended_for(&self, now: Instant) -> BTreeMap<ContainerId, Duration> {
        self.ends.iter().map(|(id, since)| (id.clone(), now.duration_since(*since))).collect()
    }
}

/// The journal line of one pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// First status was made then (`status.startTime`), nanoseconds since the epoch.
    pub started_ns: i64,
    /// Crash-loop back-off of its containers.
    pub backoff: CrashBackoff,
    /// Created containers whose start failed: they are replaced, not started again.
    pub failed_starts: BTreeSet<String>,
    /// Running containers that have not all yet of what a resize granted them, by name.
    #[serde(default)]
    pub actuated: BTreeMap<String, Actuated>,
    /// The pod's cgroup may not have yet what a resize granted.
    #[serde(default)]
    pub cgroup_behind: bool,
    /// Of a static pod: restart counts that were told, where they are not 0. Of others the API server has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, i32>,
    /// Of a static pod that ran to its end: nobody else knows once the runtime has nothing of it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Box<Over>>,
}

/// The end of a static pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Over {
    /// Of the specification that it is the end of: a manifest with a UID of its own may be written anew.
    pub spec: u64,
    /// Its last status.
    pub status: PodStatus,
}

impl Over {
    /// Whether `status` is the end of a static pod by its own doing, and not because it was refused or stopped: then it is to be begun anew.
    pub(crate) fn of(pod: &Pod, status: &PodStatus) -> Option<Self> {
        let by_itself = status.reason.as_deref().is_none_or(|why| why == pod_status::reasons::DEADLINE_EXCEEDED);
        let is_over = pod::is_static(pod) && by_itself && pod::is_terminal_phase(status.phase.as_deref());
        is_over.then(|| Self { spec: spec_hash(pod), status: status.clone() })
    }

    /// The status with which `pod` was over, if it is the same pod.
    pub(crate) fn status_of(&self, pod: &Pod) -> Option<&PodStatus> {
        (self.spec == spec_hash(pod)).then_some(&self.status)
    }
}

fn spec_hash(pod: &Pod) -> u64 {
    let bare = Pod { spec: pod.spec.clone(), ..Pod::default() };
    // A Pod is plain data, writing it cannot fail.
    fnv1a_64(&bare.to_json().unwrap_or_default())
}

/// What the runtime was told last of a container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Actuated {
    /// Id of the instance.
    pub id: String,
    /// Its CPU and memory.
    pub amounts: Amounts,
}

fn key(uid: &PodUid) -> String {
    format!("worker/{uid}")
}

impl Record {
    /// Reads the line of a pod; `None` when there is none. An unreadable line counts as none and is reported.
    pub(crate) fn load(journal: &dyn Journal, uid: &PodUid) -> Option<Self> {
        let bytes = match journal.load(&key(uid)) {
            Ok(bytes) => bytes?,
            Err(e) => {
                tracing::warn!(%uid, error = %e, "worker's journal line cannot be read, back-off starts afresh");
                return None;
            }
        };
        match serde_json::from_slice(&bytes) {
            Ok(record) => Some(record),
            Err(e) => {
                tracing::warn!(%uid, error = %e, "worker's journal line is damaged, back-off starts afresh");
                None
            }
        }
    }

    pub(crate) fn save(&self, journal: &dyn Journal, uid: &PodUid) -> Result<(), JournalError> {
        let bytes = serde_json::to_vec(self).map_err(|e| JournalError { message: e.to_string() })?;
        journal.save(&key(uid), &bytes)
    }

    /// As [`Self::save`], when nothing depends on it. Does not block.
    pub(crate) fn save_soon(&self, journal: &dyn Journal, uid: &PodUid) -> Result<(), serde_json::Error> {
        journal.put_soon(&key(uid), Some(serde_json::to_vec(self)?));
        Ok(())
    }

    /// Removes the line of a pod that is done. Does not block: one that comes back after a power cut is swept.
    pub(crate) fn forget(journal: &dyn Journal, uid: &PodUid) {
        journal.put_soon(&key(uid), None);
    }

    /// Whether a resize is not carried out yet.
    pub(crate) fn is_resizing(&self) -> bool {
        !self.actuated.is_empty() || self.cgroup_behind
    }

    pub(crate) fn start_failed(&self, id: &ContainerId) -> bool {
        self.failed_starts.contains(id.as_str())
    }

    pub(crate) fn started_at(&self) -> Timestamp {
        Timestamp(self.started_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::runtime::ContainerObservation;

    #[test]
    fn the_end_of_a_static_pod_is_one_by_its_own_doing_and_of_its_manifest() {
        let of = |source: &str, image: &str| {
            let annotations = serde_json::json!({ "kubernetes.io/config.source": source });
            let spec = serde_json::json!({ "containers": [{ "name": "app", "image": image }] });
            let metadata = serde_json::json!({ "name": "web", "annotations": annotations });
            fakes::pod("u1", serde_json::json!({ "metadata": metadata, "spec": spec }))
        };
        let status = |phase: &str, reason: Option<&str>| PodStatus {
            phase: Some(phase.to_owned()),
            reason: reason.map(str::to_owned),
            ..PodStatus::default()
        };
        let pod = of("file", "1");
        let rows = [
            ("file", "Succeeded", None, true),
            ("file", "Failed", None, true),
            ("file", "Failed", Some("DeadlineExceeded"), true),
            ("file", "Failed", Some(contract::volume::ATTACH_LIMIT), false),
            ("file", "Failed", Some("Terminated"), false),
            ("file", "Running", None, false),
            ("api", "Succeeded", None, false),
        ];
        for (source, phase, reason, want) in rows {
            assert_eq!(
                Over::of(&of(source, "1"), &status(phase, reason)).is_some(),
                want,
                "{source} {phase} {reason:?}"
            );
        }
        let over = Over::of(&pod, &status("Succeeded", None)).unwrap();
        assert_eq!(over.status_of(&pod), Some(&status("Succeeded", None)));
        assert_eq!(over.status_of(&of("file", "2")), None, "its manifest was written anew");
    }

    #[test]
    fn an_end_is_known_since_it_was_first_seen_and_forgotten_with_its_instance() {
        let container = |id: &str, state| ContainerObservation { state, ..crate::tests::container(id, 0) };
        let mut observed = PodObservation::empty("u".into(), "ns", "p");
        let start = Instant::now();
        let mut memo = Memo::default();
        observed.containers = vec![container("a", ContainerState::Exited), container("b", ContainerState::Running)];
        memo.note_ends(&observed, start);
        observed.containers[1].state = ContainerState::Exited;
        memo.note_ends(&observed, start + Duration::from_secs(5));
        let known = memo.ended_for(start + Duration::from_secs(7));
        let secs = |id: &str| known.get(&ContainerId::from(id)).map(Duration::as_secs);
        assert_eq!((secs("a"), secs("b")), (Some(7), Some(2)));
        observed.containers.remove(0);
        memo.note_ends(&observed, start);
        assert_eq!(memo.ends.len(), 1);
    }
}
