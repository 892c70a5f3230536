//! Pods by full name, in the order in which they came.

use std::collections::{BTreeMap, BTreeSet};

use model::PodUid;
use model::core::Pod;
use model::pod::{full_name, uid};

/// Pods that are desired, have a worker, or run without either. Mostly one of a name.
#[derive(Debug, Default)]
pub(crate) struct Names {
    by_uid: BTreeMap<PodUid, String>,
    by_name: BTreeMap<String, Namesakes>,
}

#[derive(Debug, Default)]
struct Namesakes {
    all: BTreeSet<PodUid>,
    /// Those that came from a source, in order.
    arrivals: Vec<PodUid>,
}

impl Names {
    /// Notes the name of a pod.
    pub(crate) fn know(&mut self, pod: &Pod) -> PodUid {
        let id = uid(pod);
        self.know_name(&id, full_name(pod));
        id
    }

    /// Notes the name of a pod of which nothing else is known.
    pub(crate) fn know_name(&mut self, id: &PodUid, name: String) {
        self.by_name.entry(name.clone()).or_default().all.insert(id.clone());
        self.by_uid.insert(id.clone(), name);
    }

    /// Notes that a pod came from its source; the first time counts.
    pub(crate) fn arrive(&mut self, pod: &Pod) {
        let id = self.know(pod);
        let arrivals = self.by_uid.get(&id).and_then(|name| self.by_name.get_mut(name)).map(|n| &mut n.arrivals);
        if let Some(arrivals) = arrivals.filter(|a| !a.contains(&id)) {
            arrivals.push(id);
        }
    }

    pub(crate) fn forget(&mut self, id: &PodUid) {
        let Some(name) = self.by_uid.remove(id) else { return };
        let Some(namesakes) = self.by_name.get_mut(&name) else { return };
        namesakes.all.remove(id);
        namesakes.arrivals.retain(|other| other != id);
        if namesakes.all.is_empty() {
            self.by_name.remove(&name);
        }
    }

    /// Name of a pod.
    pub(crate) fn of(&self, id: &PodUid) -> Option<&String> {
        self.by_uid.get(id)
    }

    /// All pods of a name.
    pub(crate) fn all_of(&self, name: &str) -> impl Iterator<Item = &PodUid> {
        self.by_name.get(name).into_iter().flat_map(|n| &n.all)
    }

    /// Pods of a name that came from a source, in order.
    pub(crate) fn arrivals_of(&self, name: &str) -> &[PodUid] {
        self.by_name.get(name).map(|n| n.arrivals.as_slice()).unwrap_or_default()
    }

    /// Pods of all names that came from a source; those of one name in order.
    pub(crate) fn arrivals(&self) -> impl Iterator<Item = &PodUid> {
        self.by_name.values().flat_map(|n| &n.arrivals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(id: &str, name: &str) -> Pod {
        fakes::pod(id, serde_json::json!({"metadata": {"name": name, "namespace": ""}}))
    }

    #[test]
    fn namesakes_keep_the_order_in_which_they_came() {
        let mut names = Names::default();
        names.know(&pod("worker-only", "a"));
        for id in ["u2", "u1", "u2"] {
            names.arrive(&pod(id, "a"));
        }
        names.arrive(&pod("u3", "b"));
        assert_eq!(names.arrivals_of("a_"), ["u2".into(), "u1".into()]);
        assert_eq!(names.all_of("a_").count(), 3);
        assert_eq!(names.arrivals().count(), 3);
        names.forget(&"u2".into());
        assert_eq!((names.arrivals_of("a_"), names.of(&"u2".into())), (&["u1".into()][..], None));
        for id in ["u1", "worker-only", "u3", "u3"] {
            names.forget(&id.into());
        }
        assert!(names.by_name.is_empty() && names.by_uid.is_empty());
    }
}
