//! The API server's pods of this node. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::core::Pod;
use model::pod;
use ports::api::{Followed, Object};

/// By namespace and name, as the API server keeps them: a new pod of a name takes the place of the old one.
#[derive(Debug, Default)]
pub(crate) struct PodSet {
    pods: BTreeMap<(String, String), Arc<Pod>>,
}

fn key(pod: &Pod) -> (String, String) {
    (pod::namespace(pod).to_owned(), pod::name(pod).to_owned())
}

impl PodSet {
    /// Applies one step of the watch; whether the set may have changed.
    pub(crate) fn apply(&mut self, step: Followed) -> bool {
        match step {
            Followed::All(all) => {
                self.pods = all.into_iter().filter_map(as_pod).map(|p| (key(&p), slim(p))).collect();
                true
            }
            Followed::Applied(object) => {
                let Some(pod) = as_pod(object) else { return false };
                self.pods.insert(key(&pod), slim(pod));
                true
            }
            Followed::Deleted(object) => {
                let Some(pod) = as_pod(object) else { return false };
                // The pod's name may belong to another one by now.
                let same = self.pods.get(&key(&pod)).is_some_and(|p| p.metadata.uid == pod.metadata.uid);
                same && self.pods.remove(&key(&pod)).is_some()
            }
            Followed::Failed(_) => false,
        }
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
