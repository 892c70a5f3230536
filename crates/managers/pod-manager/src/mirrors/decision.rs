//! Pure: the mirror pod that stands in the API for a static pod (pod-lifecycle 1.12).

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::pod_worker::{WorkerPhase, WorkerState};
use model::PodUid;
use model::core::{Node, Pod};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use model::pod::{CONFIG_HASH, CONFIG_MIRROR, annotation};

/// How the static pod of a full name is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Original<'a> {
    /// Is kept running.
    Runs(&'a Pod),
    /// Is desired, but waits for its turn, was refused, or is being stopped.
    Pauses,
    /// Is desired and has come to its end.
    Ended(&'a Pod),
    /// Gone from its source; its containers are still being stopped.
    Leaves,
    /// There is none.
    Absent,
}

/// How a static pod is that its source has.
pub(crate) fn desired<'a>(pod: &'a Pod, rejected: bool, worker: Option<&WorkerState>) -> Original<'a> {
    match worker {
        _ if rejected => Original::Pauses,
        Some(w) if w.phase >= WorkerPhase::Terminated => Original::Ended(pod),
        Some(w) if w.phase == WorkerPhase::Syncing && !w.termination_requested => Original::Runs(pod),
        _ => Original::Pauses,
    }
}

/// How the static pod of a name is that no source has. Before all sources have delivered nobody knows whose mirror pod it is.
pub(crate) fn undesired(
    name: &str,
    all_delivered: bool,
    workers: &BTreeMap<PodUid, Arc<WorkerState>>,
) -> Original<'static> {
    let is_stopping = |w: &Arc<WorkerState>| {
        let of_that_name = w.pod.as_ref().is_some_and(|p| model::pod::is_static(p) && model::pod::full_name(p) == name);
        of_that_name && w.phase < WorkerPhase::Terminated
    };
    if !all_delivered || workers.values().any(is_stopping) { Original::Leaves } else { Original::Absent }
}

/// What is to be done about a mirror pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is as it should be.
    Nothing,
    /// There is none: create it.
    Create,
    /// Delete the one that is there.
    Delete,
    /// Delete the one that is there, then create another.
    Replace,
}

/// Compares the mirror pod that the API has with the static pod. `was_shown`: the API has had a mirror of this version. A pod that
/// ended before it could have one gets it all the same, as else nobody would be told how it ended.
pub(crate) fn step(original: Original<'_>, mirror: Option<&Pod>, was_shown: bool) -> Step {
    let deleting = mirror.is_some_and(|m| m.metadata.deletion_timestamp.is_some());
    match (original, mirror) {
        (Original::Ended(_), Some(_)) if was_shown && deleting => Step::Delete,
        (Original::Ended(_), _) if was_shown => Step::Nothing,
        (Original::Runs(_) | Original::Ended(_), None) => Step::Create,
        (Original::Runs(pod) | Original::Ended(pod), Some(mirror)) if deleting || !is_mirror_of(mirror, pod) => {
            Step::Replace
        }
        (Original::Absent, Some(_)) => Step::Delete,
        _ => Step::Nothing,
    }
}

/// Whether this mirror pod stands for this version of the static pod.
pub(crate) fn is_mirror_of(mirror: &Pod, pod: &Pod) -> bool {
    model::pod::full_name(mirror) == model::pod::full_name(pod)
        && annotation(mirror, CONFIG_MIRROR).is_some()
        && annotation(mirror, CONFIG_MIRROR) == annotation(pod, CONFIG_HASH)
}

/// The mirror pod to be made: the static pod with its hash, owned by the node. `None`: the node is unknown to the API or
/// being removed.
pub(crate) fn mirror_pod(pod: &Pod, node: &Node) -> Option<Pod> {
    let (name, uid) = (node.metadata.name.clone()?, node.metadata.uid.clone()?);
    if node.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let mut annotations = pod.metadata.annotations.clone().unwrap_or_default();
    let hash = annotations.get(CONFIG_HASH)?.clone();
    annotations.insert(CONFIG_MIRROR.to_owned(), hash);
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name,
        uid,
        controller: Some(true),
        block_owner_deletion: None,
    };
    let metadata = ObjectMeta {
        name: pod.metadata.name.clone(),
        namespace: pod.metadata.namespace.clone(),
        labels: pod.metadata.labels.clone(),
        annotations: Some(annotations),
        owner_references: Some(vec![owner]),
        finalizers: pod.metadata.finalizers.clone(),
        ..ObjectMeta::default()
    };
    Some(Pod { metadata, spec: pod.spec.clone(), status: None })
}

#[cfg(test)]
mod tests;
