//! Which pods want their volumes, and what their volumes were made of. Outlives the actor.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::PodUid;
use model::core::Pod;
use model::object::ObjectRef;

/// Pods with volumes of API objects are kept in line with them by this. Make it once, outside of the actor.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Mutex<BTreeMap<PodUid, Entry>>>);

/// Newest version of each object that went into a pod's volumes; `None`: none was known.
pub(crate) type Seen = BTreeMap<ObjectRef, Option<String>>;

/// One pod.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub wish: Wish,
    /// As its worker last showed it: no try works with an older one.
    pub pod: Arc<Pod>,
    /// Set once everything was in place: refreshed from then on.
    pub placed: Option<Placed>,
}

/// What is known of a pod whose volumes are in place.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub seen: Seen,
    /// Failures of refreshes that were told, by volume.
    pub told: BTreeMap<String, String>,
    /// Pause before the next try after a failure.
    pub pause: Duration,
}

/// Whether the pod still wants its volumes, and the order among those who fetch for it.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    live: Arc<AtomicBool>,
    /// Held from the first fetch to the last write, so that older content never follows newer.
    pub turn: Arc<tokio::sync::Mutex<()>>,
}

impl Wish {
    fn new() -> Self {
        Self { live: Arc::new(AtomicBool::new(true)), turn: Arc::default() }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.live, &other.live)
    }
}

impl Ledger {
    fn rows(&self) -> MutexGuard<'_, BTreeMap<PodUid, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pod wants its volumes.
    pub(crate) fn want(&self, pod: &Arc<Pod>) -> Wish {
        let fresh = || Entry { wish: Wish::new(), pod: pod.clone(), placed: None };
        let mut rows = self.rows();
        let entry = rows.entry(model::pod::uid(pod)).or_insert_with(fresh);
        entry.pod = pod.clone();
        entry.wish.clone()
    }

    pub(crate) fn wish(&self, uid: &PodUid) -> Option<Wish> {
        self.rows().get(uid).map(|e| e.wish.clone())
    }

    pub(crate) fn get(&self, uid: &PodUid) -> Option<Entry> {
        self.rows().get(uid).cloned()
    }

    /// The pod's volumes are to go: tries under way end without making anything.
    pub(crate) fn forget(&self, uid: &PodUid) {
        if let Some(entry) = self.rows().remove(uid) {
            entry.wish.live.store(false, Ordering::Release);
        }
    }

    /// Notes what is in place, unless the pod has let go of that wish.
    pub(crate) fn place(&self, uid: &PodUid, wish: &Wish, placed: Placed) -> bool {
        match self.rows().get_mut(uid).filter(|e| e.wish.is(wish)) {
            Some(entry) => {
                entry.placed = Some(placed);
                true
            }
            None => false,
        }
    }

    /// Pods whose volumes are in place, and what went into them.
    pub(crate) fn placed(&self) -> Vec<(PodUid, Seen)> {
        let rows = self.rows();
        rows.iter().filter_map(|(uid, e)| Some((uid.clone(), e.placed.as_ref()?.seen.clone()))).collect()
    }
}
