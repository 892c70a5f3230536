//! Pure: the complete set of one source against what was known of it (pod-lifecycle 1.4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::core::Pod;
use model::pod::{CONFIG_MIRROR, CONFIG_SEEN, CONFIG_SOURCE, full_name, uid};
use model::{PodUid, Timestamp};

/// One change of the desired set. Order of delivery: remove, add, update, delete, reconcile; so that "same name, new UID"
/// first stops the old pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// Gone from its source.
    Remove(Arc<Pod>),
    /// New UID.
    Add(Arc<Pod>),
    /// Specification, labels or annotations differ.
    Update(Arc<Pod>),
    /// A deletion timestamp appeared or changed.
    Delete(Arc<Pod>),
    /// Only the status differs.
    Reconcile(Arc<Pod>),
}

impl Change {
    /// The pod that changes.
    pub(crate) fn pod(&self) -> &Arc<Pod> {
        match self {
            Change::Remove(pod)
            | Change::Add(pod)
            | Change::Update(pod)
            | Change::Delete(pod)
            | Change::Reconcile(pod) => pod,
        }
    }
}

/// Outcome of [`merge`].
#[derive(Debug, Default)]
pub(crate) struct Merge {
    /// The source's set from now on.
    pub(crate) next: BTreeMap<PodUid, Arc<Pod>>,
    /// What changed, in order of delivery.
    pub(crate) changes: Vec<Change>,
    /// Pods left out because an earlier one of the set has the same full name.
    pub(crate) duplicates: Vec<Arc<Pod>>,
}

/// Compares the full set `incoming` of a source with the `known` one. Pods that were known keep their first-seen stamp; new
/// ones get `now`.
pub(crate) fn merge(
    source: &str,
    known: &BTreeMap<PodUid, Arc<Pod>>,
    incoming: Vec<Arc<Pod>>,
    now: Timestamp,
) -> Merge {
    let mut out = Merge::default();
    let mut names = BTreeSet::new();
    let (mut adds, mut updates, mut deletes, mut reconciles) = (vec![], vec![], vec![], vec![]);
    for pod in incoming {
        if !names.insert(full_name(&pod)) {
            out.duplicates.push(pod);
            continue;
        }
        let id = uid(&pod);
        let Some(old) = known.get(&id) else {
            let pod = Arc::new(stamp(&pod, source, &now.rfc3339_nano()));
            adds.push(Change::Add(pod.clone()));
            out.next.insert(id, pod);
            continue;
        };
        let seen = model::pod::annotation(old, CONFIG_SEEN).unwrap_or_default().to_owned();
        let next = stamp(&pod, source, &seen);
        let kept = match compare(old, &next) {
            Difference::None => old.clone(),
            Difference::Status => {
                let pod = Arc::new(next);
                reconciles.push(Change::Reconcile(pod.clone()));
                pod
            }
            Difference::Deletion => {
                let pod = Arc::new(next);
                deletes.push(Change::Delete(pod.clone()));
                pod
            }
            Difference::Content => {
                let pod = Arc::new(next);
                updates.push(Change::Update(pod.clone()));
                pod
            }
        };
        out.next.insert(id, kept);
    }
    out.changes =
        known.iter().filter(|(id, _)| !out.next.contains_key(*id)).map(|(_, p)| Change::Remove(p.clone())).collect();
    adds.sort_by_key(creation);
    out.changes.extend(adds);
    out.changes.extend(updates);
    out.changes.extend(deletes);
    out.changes.extend(reconciles);
    out
}

fn creation(change: &Change) -> Timestamp {
    let Change::Add(pod) = change else { return Timestamp::ZERO };
    pod.metadata.creation_timestamp.as_ref().map(Timestamp::from_api).unwrap_or_default()
}

/// Whether a worker that acts on `old` does what `desired` says. Of a status only the conditions of readiness gates matter to it:
/// the rest mostly comes from this node.
pub(crate) fn is_acted_on(old: &Arc<Pod>, desired: &Arc<Pod>) -> bool {
    Arc::ptr_eq(old, desired)
        || match compare(old, desired) {
            Difference::None => true,
            Difference::Status => !has_readiness_gates(desired),
            Difference::Deletion | Difference::Content => false,
        }
}

fn has_readiness_gates(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|s| s.readiness_gates.as_ref()).is_some_and(|gates| !gates.is_empty())
}

/// How an incoming pod differs from the known one.
enum Difference {
    None,
    Status,
    Deletion,
    Content,
}

fn compare(old: &Pod, new: &Pod) -> Difference {
    let (a, b) = (&old.metadata, &new.metadata);
    let same = old.spec == new.spec
        && a.labels == b.labels
        && a.deletion_timestamp == b.deletion_timestamp
        && a.deletion_grace_period_seconds == b.deletion_grace_period_seconds
        && foreign_annotations(old) == foreign_annotations(new);
    match (same, old.status == new.status, b.deletion_timestamp.is_some()) {
        (true, true, _) => Difference::None,
        (true, false, _) => Difference::Status,
        (false, _, true) => Difference::Deletion,
        (false, _, false) => Difference::Content,
    }
}

fn foreign_annotations(pod: &Pod) -> BTreeMap<&str, &str> {
    let local = [CONFIG_SOURCE, CONFIG_SEEN, CONFIG_MIRROR];
    pod.metadata
        .annotations
        .iter()
        .flatten()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .filter(|(k, _)| !local.contains(k))
        .collect()
}

fn stamp(pod: &Pod, source: &str, seen: &str) -> Pod {
    let mut pod = pod.clone();
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(CONFIG_SOURCE.to_owned(), source.to_owned());
    annotations.insert(CONFIG_SEEN.to_owned(), seen.to_owned());
    pod
}

#[cfg(test)]
mod tests;
