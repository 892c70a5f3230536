//! Pure: which objects are held by whom.

use std::collections::{BTreeMap, BTreeSet};

use model::PodUid;
use model::core::Pod;
use model::object::ObjectRef;

/// Pods and what each of them names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holds {
    by_pod: BTreeMap<PodUid, BTreeSet<ObjectRef>>,
    count: BTreeMap<ObjectRef, usize>,
}

/// What a change of the holds means for the objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Held now, not before.
    pub(crate) gained: BTreeSet<ObjectRef>,
    /// Held before, by nobody now.
    pub(crate) lost: BTreeSet<ObjectRef>,
}

impl Holds {
    /// The pod holds exactly these from now on; none: it is forgotten.
    pub(crate) fn set(&mut self, uid: &PodUid, wanted: BTreeSet<ObjectRef>) -> Moved {
        let before = self.by_pod.remove(uid).unwrap_or_default();
        let mut moved = Moved::default();
        for object in wanted.difference(&before) {
            let count = self.count.entry(object.clone()).or_default();
            *count += 1;
            if *count == 1 {
                moved.gained.insert(object.clone());
            }
        }
        for object in before.difference(&wanted) {
            let left = self.count.get(object).map_or(0, |n| n.saturating_sub(1));
            if left > 0 {
                self.count.insert(object.clone(), left);
            } else {
                self.count.remove(object);
                moved.lost.insert(object.clone());
            }
        }
        if !wanted.is_empty() {
            self.by_pod.insert(uid.clone(), wanted);
        }
        moved
    }

    pub(crate) fn contains(&self, object: &ObjectRef) -> bool {
        self.count.contains_key(object)
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = &ObjectRef> {
        self.count.keys()
    }
}

/// ConfigMaps and secrets that a pod names.
pub(crate) fn wanted(pod: &Pod) -> BTreeSet<ObjectRef> {
    projection::references(pod).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use model::object::ObjectKind;

    use super::*;

    fn object(name: &str) -> ObjectRef {
        ObjectRef { kind: ObjectKind::Secret, namespace: "ns".to_owned(), name: name.to_owned() }
    }

    fn set(names: &[&str]) -> BTreeSet<ObjectRef> {
        names.iter().map(|n| object(n)).collect()
    }

    #[test]
    fn an_object_is_gained_with_its_first_pod_and_lost_with_its_last() {
        let mut holds = Holds::default();
        type Row<'a> = (&'a str, &'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str]);
        let table: &[Row<'_>] = &[
            ("the first pod", "u1", &["a", "b"], &["a", "b"], &[]),
            ("a second pod shares one", "u2", &["b", "c"], &["c"], &[]),
            ("said again", "u2", &["b", "c"], &[], &[]),
            ("the second pod changes its mind", "u2", &["c", "d"], &["d"], &[]),
            ("the first pod is gone", "u1", &[], &[], &["a", "b"]),
            ("and gone once more", "u1", &[], &[], &[]),
            ("the second is gone", "u2", &[], &[], &["c", "d"]),
        ];
        for (what, uid, wanted, gained, lost) in table {
            let moved = holds.set(&PodUid::from(*uid), set(wanted));
            assert_eq!(moved, Moved { gained: set(gained), lost: set(lost) }, "{what}");
        }
        assert_eq!(holds, Holds::default());
    }
}
