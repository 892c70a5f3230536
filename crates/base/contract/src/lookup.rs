//! The pods of this node, found by what a request names them with.

use std::sync::Arc;

use model::PodUid;
use model::core::{Pod, PodStatus};
use model::runtime::PodObservation;

use crate::board::BoardReader;
use crate::pod_manager::DesiredPod;
use crate::runtime::Observed;
use crate::status::StatusEntry;
use crate::{Crew, Reads, Role, Wiring};

/// Reads the boards that tell of pods. Cheap to clone; owns nothing.
#[derive(Clone, Debug)]
pub struct PodLookup {
    /// Desired pods.
    pub pods: BoardReader<PodUid, DesiredPod>,
    /// Statuses.
    pub status: BoardReader<PodUid, StatusEntry>,
    /// What the runtime has.
    pub runtime: BoardReader<PodUid, Observed>,
}

/// A pod of this node.
#[derive(Clone, Debug)]
pub struct FoundPod {
    /// UID as the node has it: a static pod's own, not its mirror's.
    pub uid: PodUid,
    /// The row of the board.
    pub desired: Arc<DesiredPod>,
}

impl FoundPod {
    /// The pod as its source has it.
    #[must_use]
    pub fn pod(&self) -> &Pod {
        &self.desired.pod
    }
}

impl PodLookup {
    /// For a role that may read them.
    #[must_use]
    pub fn new<R>(crew: &Crew<R>) -> Self
    where
        R: Role + Reads<DesiredPod> + Reads<StatusEntry> + Reads<Observed>,
    {
        PodLookup { pods: crew.board(), status: crew.board(), runtime: crew.board() }
    }

    /// For those who hold the whole wiring.
    #[must_use]
    pub fn of(wiring: &Wiring) -> Self {
        PodLookup { pods: wiring.board(), status: wiring.board(), runtime: wiring.board() }
    }

    /// The pod of that namespace and name.
    #[must_use]
    pub fn by_name(&self, namespace: &str, name: &str) -> Option<FoundPod> {
        let fits = |pod: &Pod| {
            pod.metadata.name.as_deref() == Some(name) && pod.metadata.namespace.as_deref() == Some(namespace)
        };
        self.pods
            .snapshot()
            .into_iter()
            .find_map(|(uid, desired)| fits(&desired.pod).then_some(FoundPod { uid, desired }))
    }

    /// As [`Self::by_name`]; a UID that is given must be the pod's own or that of its mirror.
    #[must_use]
    pub fn by_full_name(&self, namespace: &str, name: &str, uid: Option<&str>) -> Option<FoundPod> {
        let found = self.by_name(namespace, name)?;
        let mirror = found.desired.mirror.as_ref().and_then(|m| m.metadata.uid.as_deref());
        let fits = uid.is_none_or(|uid| uid.is_empty() || found.uid.as_str() == uid || mirror == Some(uid));
        fits.then_some(found)
    }

    /// Its status: StatusManager's, else the one that its source last told.
    #[must_use]
    pub fn status_of(&self, found: &FoundPod) -> Option<Arc<PodStatus>> {
        let known = self.status.get(&found.uid).map(|row| row.status.clone());
        known.or_else(|| found.desired.pod.status.clone().map(Arc::new))
    }

    /// What the runtime has of it.
    #[must_use]
    pub fn observed(&self, uid: &PodUid) -> Option<Arc<PodObservation>> {
        self.runtime.get(uid).map(|row| row.pod.clone())
    }

    /// All pods, in UID order.
    #[must_use]
    pub fn all(&self) -> Vec<FoundPod> {
        self.pods.snapshot().into_iter().map(|(uid, desired)| FoundPod { uid, desired }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config_sources::Source;

    fn lookup() -> PodLookup {
        let wiring = Wiring::default();
        let mut pod = Pod::default();
        pod.metadata.name = Some("web".to_owned());
        pod.metadata.namespace = Some("shop".to_owned());
        let mut mirror = pod.clone();
        mirror.metadata.uid = Some("m".to_owned());
        let row = DesiredPod { mirror: Some(Arc::new(mirror)), ..DesiredPod::admitted(Arc::new(pod), Source::File) };
        wiring.put(PodUid::from("s"), row);
        PodLookup::of(&wiring)
    }

    #[test]
    fn a_uid_may_be_the_pods_own_or_its_mirrors_and_nobody_elses() {
        let lookup = lookup();
        for (uid, found) in [(None, true), (Some(""), true), (Some("s"), true), (Some("m"), true), (Some("x"), false)] {
            assert_eq!(lookup.by_full_name("shop", "web", uid).is_some(), found, "{uid:?}");
        }
    }

    #[test]
    fn a_name_belongs_to_its_namespace() {
        assert!(lookup().by_name("default", "web").is_none());
        assert!(lookup().by_name("shop", "web").is_some());
    }
}
