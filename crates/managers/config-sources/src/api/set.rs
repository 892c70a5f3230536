//! The API server's pods of this node, and what of them somebody else has not been given yet. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::config_sources::Source;
use model::core::Pod;
use model::{PodUid, Timestamp, pod};
use ports::api::{Followed, Object};

use crate::own::own;

/// By namespace and name, as the API server keeps them: a new pod of a name takes the place of the old one.
#[derive(Debug, Default)]
pub(crate) struct PodSet {
    pods: BTreeMap<(String, String), Arc<Pod>>,
}

/// What changed in a set: all of it, or these pods. `None`: the pod went.
#[derive(Debug, PartialEq)]
pub(crate) enum Changes {
    All,
    Of(BTreeMap<PodUid, Option<Arc<Pod>>>),
}

impl Default for Changes {
    /// Nothing.
    fn default() -> Self {
        Changes::Of(BTreeMap::new())
    }
}

impl Changes {
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Changes::Of(pods) if pods.is_empty())
    }

    /// Adds what changed after this.
    pub(crate) fn extend(&mut self, later: &Changes) {
        match (&mut *self, later) {
            (Changes::All, _) => {}
            (_, Changes::All) => *self = Changes::All,
            (Changes::Of(pods), Changes::Of(later)) => pods.extend(later.iter().map(|(u, p)| (u.clone(), p.clone()))),
        }
    }
}

fn key(pod: &Pod) -> (String, String) {
    (pod::namespace(pod).to_owned(), pod::name(pod).to_owned())
}

impl PodSet {
    /// Applies one step of the watch; gives what may have changed. Pods are stamped here, where nobody else has them yet, so
    /// that PodManager keeps them without a copy.
    pub(crate) fn apply(&mut self, step: Followed, now: Timestamp) -> Changes {
        let mut changed = BTreeMap::new();
        match step {
            Followed::All(all) => {
                let all = all.into_iter().filter_map(as_pod);
                self.pods = all.map(|p| (key(&p), p)).map(|(k, p)| (k.clone(), self.own(&k, p, now))).collect();
                return Changes::All;
            }
            Followed::Applied(object) => {
                if let Some(pod) = as_pod(object) {
                    let key = key(&pod);
                    let pod = self.own(&key, pod, now);
                    let before = self.pods.insert(key, pod.clone());
                    changed.extend(before.map(|p| (pod::uid(&p), None)));
                    changed.insert(pod::uid(&pod), Some(pod));
                }
            }
            Followed::Deleted(object) => {
                if let Some(pod) = as_pod(object) {
                    // The pod's name may belong to another one by now.
                    let key = key(&pod);
                    if self.pods.get(&key).is_some_and(|p| p.metadata.uid == pod.metadata.uid) {
                        self.pods.remove(&key);
                        changed.insert(pod::uid(&pod), None);
                    }
                }
            }
            Followed::Failed(_) => {}
        }
        Changes::Of(changed)
    }

    /// Replaces all by what the store kept.
    pub(crate) fn restore(&mut self, pods: Vec<Arc<Pod>>, now: Timestamp) {
        self.pods = BTreeMap::new();
        self.pods = pods.into_iter().map(|p| (key(&p), p)).map(|(k, p)| (k.clone(), self.own(&k, p, now))).collect();
    }

    /// With the source's stamp, and without what no node needs: who wrote which field is often half of a pod.
    fn own(&self, key: &(String, String), mut pod: Arc<Pod>, now: Timestamp) -> Arc<Pod> {
        Arc::make_mut(&mut pod).metadata.managed_fields = None;
        own(pod, Source::Api, self.pods.get(key), now)
    }

    pub(crate) fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.pods.len()
    }
}

fn as_pod(object: Object) -> Option<Arc<Pod>> {
    match object {
        Object::Pod(pod) => Some(pod),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_stamped_once_whatever_they_say_and_keep_the_time_of_their_first_sight() {
        let (first, later) = (Timestamp::from_secs(1), Timestamp::from_secs(2));
        let said = json!({pod::CONFIG_SOURCE: "file", pod::CONFIG_SEEN: "never", "theirs": "kept"});
        let given = |uid: &str| {
            let pod = fakes::pod(uid, json!({"metadata": {"name": "a", "annotations": said}}));
            Followed::Applied(Object::Pod(Arc::new(pod)))
        };
        let mut set = PodSet::default();
        let mut seen_after = |step, now| {
            set.apply(step, now);
            let pod = set.pods().next().cloned().expect("a pod");
            assert_eq!(pod::annotation(&pod, pod::CONFIG_SOURCE), Some("api"));
            assert_eq!(pod::annotation(&pod, "theirs"), Some("kept"));
            pod::annotation(&pod, pod::CONFIG_SEEN).map(str::to_owned)
        };
        assert_eq!(seen_after(given("u1"), first), Some(first.rfc3339_nano()));
        assert_eq!(seen_after(given("u1"), later), Some(first.rfc3339_nano()));
        assert_eq!(seen_after(given("u2"), later), Some(later.rfc3339_nano()), "another pod of that name");
    }
}
