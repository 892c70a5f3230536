//! The API server's pods of this node, and what of them somebody else has not been given yet. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::core::Pod;
use model::{PodUid, pod};
use ports::api::{Followed, Object};

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
    /// Applies one step of the watch; gives what may have changed.
    pub(crate) fn apply(&mut self, step: Followed) -> Changes {
        let mut changed = BTreeMap::new();
        match step {
            Followed::All(all) => {
                self.pods = all.into_iter().filter_map(as_pod).map(|p| (key(&p), slim(p))).collect();
                return Changes::All;
            }
            Followed::Applied(object) => {
                if let Some(pod) = as_pod(object).map(slim) {
                    let before = self.pods.insert(key(&pod), pod.clone());
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
    pub(crate) fn restore(&mut self, pods: Vec<Arc<Pod>>) {
        self.pods = pods.into_iter().map(|p| (key(&p), p)).collect();
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

/// Without what no node needs: who wrote which field is often half of a pod.
fn slim(mut pod: Arc<Pod>) -> Arc<Pod> {
    if pod.metadata.managed_fields.is_some() {
        Arc::make_mut(&mut pod).metadata.managed_fields = None;
    }
    pod
}
