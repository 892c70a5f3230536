//! The two lists of a relist, by pod, and where they differ from what is known (pod-lifecycle 7.1).

use std::collections::BTreeMap;

use cri_api::v1;
use model::runtime::{ContainerState, PodObservation};
use model::{PodUid, SandboxId};

use super::map;

/// What the lists show of one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Ready or not, by id.
    pub(crate) sandboxes: BTreeMap<String, bool>,
    /// State and sandbox, by id.
    pub(crate) containers: BTreeMap<String, (ContainerState, SandboxId)>,
}

/// Everything that belongs to pods of this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists(pub(crate) BTreeMap<PodUid, Listed>);

impl Lists {
    pub(crate) fn new(sandboxes: Vec<v1::PodSandbox>, containers: Vec<v1::Container>) -> Self {
        let mut pods: BTreeMap<PodUid, Listed> = BTreeMap::new();
        for s in sandboxes {
            if let Some(uid) = map::uid(&s.labels) {
                pods.entry(uid.into()).or_default().sandboxes.insert(s.id, map::is_ready(s.state));
            }
        }
        for c in containers {
            if let Some(uid) = map::uid(&c.labels) {
                let facts = (map::state(c.state), c.pod_sandbox_id.into());
                pods.entry(uid.into()).or_default().containers.insert(c.id, facts);
            }
        }
        Self(pods)
    }

    /// Pods whose sandboxes or containers are others, or in other states, than `known` says.
    pub(crate) fn changed<'a>(&'a self, known: impl Iterator<Item = &'a PodObservation>) -> Vec<PodUid> {
        let mut rest: BTreeMap<&PodUid, &Listed> = self.0.iter().collect();
        let mut changed: Vec<PodUid> = Vec::new();
        for pod in known {
            if rest.remove(&pod.uid).is_none_or(|listed| *listed != listed_of(pod)) {
                changed.push(pod.uid.clone());
            }
        }
        changed.extend(rest.into_keys().cloned());
        changed.sort();
        changed
    }
}

fn listed_of(pod: &PodObservation) -> Listed {
    let container = |c: &model::runtime::ContainerObservation| (c.id.to_string(), (c.state, c.sandbox.clone()));
    Listed {
        sandboxes: pod.sandboxes.iter().map(|s| (s.id.to_string(), s.ready)).collect(),
        containers: pod.containers.iter().map(container).collect(),
    }
}

#[cfg(test)]
mod tests;
