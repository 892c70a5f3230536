//! Pure: the complete set of one source against what was known of it (pod-lifecycle 1.4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::core::Pod;
use model::pod::{CONFIG_MIRROR, CONFIG_SEEN, CONFIG_SOURCE, annotation, full_name, stamp, uid};
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
    for pod in incoming {
        if !names.insert(full_name(&pod)) {
            out.duplicates.push(pod);
            continue;
        }
        let id = uid(&pod);
        let old = known.get(&id);
        let change = compare_one(source, old, &pod, now);
        let kept = change.as_ref().map(Change::pod).or(old).cloned().unwrap_or(pod);
        out.changes.extend(change);
        out.next.insert(id, kept);
    }
    let removed = known.iter().filter(|(id, _)| !out.next.contains_key(*id));
    out.changes.extend(removed.map(|(_, p)| Change::Remove(p.clone())));
    sort_for_delivery(&mut out.changes);
    out
}

/// How one pod of a source differs from the one that was `known`: `None`, not at all.
pub(crate) fn compare_one(source: &str, known: Option<&Arc<Pod>>, pod: &Arc<Pod>, now: Timestamp) -> Option<Change> {
    let Some(old) = known else {
        return Some(Change::Add(stamped(pod, source, None, now)));
    };
    let difference = compare(old, pod);
    let next = || stamped(pod, source, annotation(old, CONFIG_SEEN), now);
    match difference {
        Difference::None => None,
        Difference::Status => Some(Change::Reconcile(next())),
        Difference::Deletion => Some(Change::Delete(next())),
        Difference::Content => Some(Change::Update(next())),
    }
}

/// Puts changes in the order of delivery; new pods in that of their creation.
pub(crate) fn sort_for_delivery(changes: &mut [Change]) {
    changes.sort_by_cached_key(|change| match change {
        Change::Remove(_) => (0, Timestamp::ZERO),
        Change::Add(pod) => (1, creation(pod)),
        Change::Update(_) => (2, Timestamp::ZERO),
        Change::Delete(_) => (3, Timestamp::ZERO),
        Change::Reconcile(_) => (4, Timestamp::ZERO),
    });
}

fn creation(pod: &Pod) -> Timestamp {
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
        && foreign_annotations(old).eq(foreign_annotations(new));
    match (same, old.status == new.status, b.deletion_timestamp.is_some()) {
        (true, true, _) => Difference::None,
        (true, false, _) => Difference::Status,
        (false, _, true) => Difference::Deletion,
        (false, _, false) => Difference::Content,
    }
}

fn foreign_annotations(pod: &Pod) -> impl Iterator<Item = (&String, &String)> {
    let local = [CONFIG_SOURCE, CONFIG_SEEN, CONFIG_MIRROR];
    pod.metadata.annotations.iter().flatten().filter(move |(key, _)| !local.contains(&key.as_str()))
}

/// A source that stamps its pods itself shares them; what others give is copied.
fn stamped(pod: &Arc<Pod>, source: &str, first_seen: Option<&str>, now: Timestamp) -> Arc<Pod> {
    let own = annotation(pod, CONFIG_SEEN).filter(|_| annotation(pod, CONFIG_SOURCE) == Some(source));
    let own = own.filter(|seen| Timestamp::parse_rfc3339(seen).is_some());
    if own.is_some() && (first_seen.is_none() || own == first_seen) {
        return pod.clone();
    }
    let mut pod = Pod::clone(pod);
    stamp(&mut pod, source, first_seen.unwrap_or(&now.rfc3339_nano()));
    Arc::new(pod)
}

#[cfg(test)]
mod tests;
