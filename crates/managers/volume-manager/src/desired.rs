//! Desired state: which pods are to have their volumes, and which versions of objects went into them. Outlives the actor.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contract::volume::MountedVolumes;
use model::PodUid;
use model::core::Pod;
use model::object::ObjectRef;

use crate::spec::{self, Kind};

/// Pods whose volumes are to be in place. Make it once, outside of the actor.
#[derive(Clone, Debug, Default)]
pub struct DesiredVolumes(Arc<Mutex<BTreeMap<PodUid, DesiredPod>>>);

/// Newest version of each object that went into a pod's volumes; `None`: none was known.
pub(crate) type ObjectVersions = BTreeMap<ObjectRef, Option<String>>;

/// One pod.
#[derive(Clone, Debug)]
pub(crate) struct DesiredPod {
    pub request: MountRequest,
    /// As its worker last showed it: no try works with an older one.
    pub pod: Arc<Pod>,
    /// Set once everything was in place: refreshed from then on.
    pub mounted: Option<Mounted>,
}

/// What is known of a pod whose volumes are in place.
#[derive(Clone, Debug)]
pub(crate) struct Mounted {
    pub versions: ObjectVersions,
    /// Failures of refreshes that were reported, by volume.
    pub reported: BTreeMap<String, String>,
    /// Pause before the next try after a failure.
    pub pause: Duration,
    /// All of it, where some driver is told of its volume again and again.
    pub republished: Option<Arc<MountedVolumes>>,
}

impl Mounted {
    /// What is in place, if that is all that the pod uses now.
    pub(crate) fn republished_for(&self, pod: &Pod) -> Option<Arc<MountedVolumes>> {
        let placed = self.republished.as_ref()?;
        let has = |name: &String| placed.volumes.contains_key(name) || placed.devices.contains_key(name);
        let all = spec::used_volumes(pod).iter().all(|(v, kind)| *kind == Kind::Image || has(&v.name));
        all.then(|| placed.clone())
    }
}

/// One request of a pod for its volumes, from its first MountVolumes to its UnmountVolumes.
#[derive(Clone, Debug)]
pub(crate) struct MountRequest {
    live: Arc<AtomicBool>,
    /// Held from the first fetch to the last write, so that older content never follows newer.
    pub turn: Arc<tokio::sync::Mutex<()>>,
}

impl MountRequest {
    fn new() -> Self {
        Self { live: Arc::new(AtomicBool::new(true)), turn: Arc::default() }
    }

    /// Whether no UnmountVolumes has come since.
    pub(crate) fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.live, &other.live)
    }
}

impl DesiredVolumes {
    fn pods(&self) -> MutexGuard<'_, BTreeMap<PodUid, DesiredPod>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pod is to have its volumes.
    pub(crate) fn request(&self, pod: &Arc<Pod>) -> MountRequest {
        let fresh = || DesiredPod { request: MountRequest::new(), pod: pod.clone(), mounted: None };
        let mut pods = self.pods();
        let desired = pods.entry(model::pod::uid(pod)).or_insert_with(fresh);
        desired.pod = pod.clone();
        desired.request.clone()
    }

    pub(crate) fn get(&self, uid: &PodUid) -> Option<DesiredPod> {
        self.pods().get(uid).cloned()
    }

    /// The pod's volumes are to go: tries under way end without making anything.
    pub(crate) fn cancel(&self, uid: &PodUid) {
        if let Some(desired) = self.pods().remove(uid) {
            desired.request.live.store(false, Ordering::Release);
        }
    }

    /// Notes what is in place; `false` when that request was cancelled.
    pub(crate) fn note_mounted(&self, uid: &PodUid, request: &MountRequest, mounted: Mounted) -> bool {
        match self.pods().get_mut(uid).filter(|d| d.request.is(request)) {
            Some(desired) => {
                desired.mounted = Some(mounted);
                true
            }
            None => false,
        }
    }

    /// Every pod that is to have volumes, and whether all were in place once.
    pub(crate) fn all(&self) -> Vec<(Arc<Pod>, bool)> {
        self.pods().values().map(|d| (d.pod.clone(), d.mounted.is_some())).collect()
    }

    /// Pods whose volumes are in place, and what went into them.
    pub(crate) fn mounted(&self) -> Vec<(PodUid, ObjectVersions)> {
        let pods = self.pods();
        pods.iter().filter_map(|(uid, d)| Some((uid.clone(), d.mounted.as_ref()?.versions.clone()))).collect()
    }
}
