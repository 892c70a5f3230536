//! Pure: which dead containers, sandboxes and log directories go (pod-lifecycle 10.1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contract::pod_worker::{WorkerPhase, WorkerState};
use contract::runtime::Observed;
use model::runtime::{ContainerObservation, ContainerState};
use model::{ContainerId, PodUid, SandboxId, Timestamp};

/// Limits, as the kubelet's flags name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GcPolicy {
    /// `--minimum-container-ttl-duration`, nanoseconds.
    pub min_age_ns: i64,
    /// `--maximum-dead-containers-per-container`; negative: no limit.
    pub max_per_container: i32,
    /// `--maximum-dead-containers`; negative: no limit.
    pub max_containers: i32,
}

impl Default for GcPolicy {
    fn default() -> Self {
        Self { min_age_ns: 0, max_per_container: 1, max_containers: -1 }
    }
}

/// One dead container to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeadContainer {
    /// Pod.
    pub(crate) uid: PodUid,
    /// Container.
    pub(crate) id: ContainerId,
    /// Must be killed first: the runtime does not know its state.
    pub(crate) kill_first: bool,
    /// Its log file, removed with it. Empty when unknown.
    pub(crate) log_path: String,
    /// Creation, to find the oldest.
    pub(crate) created_at: Timestamp,
}

/// What to remove, in this order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct GcPlan {
    /// Containers, pod by pod; of a pod that goes as a whole the newest first.
    pub(crate) containers: Vec<DeadContainer>,
    /// Sandboxes; to be stopped and removed.
    pub(crate) sandboxes: Vec<(PodUid, SandboxId)>,
}

/// Whether everything of a pod may go: evicted or deleted, and torn down, or unknown to the workers (pod-lifecycle 2.7; a kubelet
/// does not wait for an evicted pod to be torn down, and may lose how its containers ended).
pub(crate) fn content_removable(
    uid: &PodUid,
    workers: &BTreeMap<PodUid, Arc<WorkerState>>,
    desired: &BTreeSet<PodUid>,
) -> bool {
    match workers.get(uid) {
        Some(w) => (w.evicted || w.deleted) && w.phase >= WorkerPhase::Terminated,
        None => !desired.contains(uid),
    }
}

/// Whether all that the runtime has of a pod may go when a disk runs short: its containers have ended for good, whoever still
/// wants to know of it.
pub(crate) fn runtime_removable(uid: &PodUid, workers: &BTreeMap<PodUid, Arc<WorkerState>>) -> bool {
    workers.get(uid).is_some_and(|w| w.phase >= WorkerPhase::Terminated)
}

/// Plans one round. `removable` answers [`content_removable`]; it must say no for every pod while sources are not ready.
pub(crate) fn plan(
    pods: &BTreeMap<PodUid, Arc<Observed>>,
    removable: impl Fn(&PodUid) -> bool,
    policy: GcPolicy,
    now: Timestamp,
) -> GcPlan {
    let mut kept: Vec<Vec<DeadContainer>> = Vec::new();
    let mut out = GcPlan::default();
    for (uid, row) in pods {
        let mut all_of_pod: Vec<DeadContainer> = Vec::new();
        for group in dead_by_name(uid, &row.pod.containers, policy, now) {
            if removable(uid) {
                all_of_pod.extend(group);
                continue;
            }
            let keep = usize::try_from(policy.max_per_container).unwrap_or(usize::MAX);
            let mut group = group;
            let over = group.split_off(keep.min(group.len()));
            out.containers.extend(over);
            kept.push(group);
        }
        all_of_pod.sort_by_key(|c| std::cmp::Reverse(c.created_at));
        out.containers.extend(all_of_pod);
    }
    out.containers.extend(over_total(kept, policy.max_containers));
    let going: BTreeSet<&ContainerId> = out.containers.iter().map(|c| &c.id).collect();
    for (uid, row) in pods {
        let removable = removable(uid);
        for (age, sandbox) in row.pod.sandboxes.iter().enumerate() {
            let has_containers = row.pod.containers.iter().any(|c| c.sandbox == sandbox.id && !going.contains(&c.id));
            if !sandbox.ready && !has_containers && (removable || age > 0) {
                out.sandboxes.push((uid.clone(), sandbox.id.clone()));
            }
        }
    }
    out
}

/// Candidates grouped by container name, newest first.
fn dead_by_name(
    uid: &PodUid,
    containers: &[ContainerObservation],
    policy: GcPolicy,
    now: Timestamp,
) -> Vec<Vec<DeadContainer>> {
    let mut groups: BTreeMap<&str, Vec<DeadContainer>> = BTreeMap::new();
    for c in containers {
        // What was made far in the future was made before the clock was set back: it does not wait until that has caught up.
        let too_young = now.nanos_since(c.created_at).saturating_abs() < policy.min_age_ns;
        if c.state == ContainerState::Running || too_young {
            continue;
        }
        groups.entry(&c.name).or_default().push(DeadContainer {
            uid: uid.clone(),
            id: c.id.clone(),
            kill_first: c.state == ContainerState::Unknown,
            log_path: c.log_path.clone(),
            created_at: c.created_at,
        });
    }
    groups.into_values().collect()
}

/// Above the total limit: share it evenly, then drop the oldest of what is left.
fn over_total(mut kept: Vec<Vec<DeadContainer>>, max: i32) -> Vec<DeadContainer> {
    let Ok(max) = usize::try_from(max) else { return Vec::new() };
    let total: usize = kept.iter().map(Vec::len).sum();
    if total <= max {
        return Vec::new();
    }
    let share = (max / kept.len().max(1)).max(1);
    let mut out: Vec<DeadContainer> = kept.iter_mut().flat_map(|g| g.split_off(share.min(g.len()))).collect();
    let mut rest: Vec<DeadContainer> = kept.into_iter().flatten().collect();
    rest.sort_by_key(|c| std::cmp::Reverse(c.created_at));
    out.extend(rest.split_off(max.min(rest.len())));
    out
}

/// UID of the pod that a directory in the pod log folder belongs to: the text after the last `_`.
pub(crate) fn log_dir_uid(name: &str) -> Option<PodUid> {
    name.rsplit_once('_').map(|(_, uid)| PodUid::from(uid)).filter(|u| !u.as_str().is_empty())
}

/// Container id in the name of a link in `/var/log/containers`: the text after the last `-`, at least 6 characters.
pub(crate) fn symlink_container(name: &str) -> Option<ContainerId> {
    let stem = name.strip_suffix(".log")?;
    stem.rsplit_once('-').map(|(_, id)| id).filter(|id| id.len() >= 6).map(ContainerId::from)
}

#[cfg(test)]
mod tests;
